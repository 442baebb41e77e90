// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"
)

// ErrOptions: an option has a value that this package does not define.
var ErrOptions = errors.New("seccomp: undefined option")

// Sockets says which address families a run may open. A pair of connected AF_UNIX sockets (socketpair) is always
// allowed: it reaches nobody, and node and python use it as a pipe.
type Sockets uint8

const (
	// SocketsNone, the zero value: socket is always refused.
	SocketsNone Sockets = iota
	// SocketsUnix: AF_UNIX only. Path sockets in the run's view, and abstract ones of its network namespace, can be met.
	SocketsUnix
	// SocketsAll: AF_UNIX, AF_INET, AF_INET6, and AF_NETLINK for the routing protocol that name resolution asks.
	SocketsAll
)

// String returns a stable lower-case name.
func (s Sockets) String() string {
	switch s {
	case SocketsNone:
		return "none"
	case SocketsUnix:
		return "unix"
	case SocketsAll:
		return "all"
	}
	return fmt.Sprintf("sockets(%d)", uint8(s))
}

// Options loosen the list where something else carries the load. The zero value is the strictest list.
type Options struct {
	// Sockets: see the type.
	Sockets Sockets

	// KernelIPC allows System V IPC and POSIX message queues. They outlive a run and are found by a number or a name, so
	// without an IPC namespace of its own one run meets what another one left. Set it only inside such a namespace.
	KernelIPC bool

	// Affinity allows sched_setaffinity. Where no cgroup has a CPU quota the run is held to its processors by affinity,
	// and the call would undo that.
	Affinity bool

	// OwnProcesses says that every process that the run can address is its own: it has a pid namespace, or a uid that is
	// reserved for it. Without it, calls that change limits, priority or memory placement of a process take only the
	// caller itself: otherwise a run that has its supervisor's uid could set the supervisor's limits to 0.
	OwnProcesses bool

	// PathMetadata allows the calls that change mode, owner, times and extended attributes of a file by its path.
	// Landlock does not restrict them, so a run that has its caller's uid could use them on every file of the caller.
	// Set it where the view or the uid keeps foreign files out of reach. The calls on open descriptors are always allowed.
	PathMetadata bool

	// PathAttributes allows extended attributes and inode flags by path: write permission is enough for these calls, and no
	// rule of Landlock stands in the way. Set it where the run's view of the files is its own.
	PathAttributes bool

	// FileMetadata allows mode, owner, times and attributes through a descriptor. Without it a run cannot change these of a
	// file that it may only read, but that has its uid.
	FileMetadata bool
}

func (o Options) check() error {
	if o.Sockets > SocketsAll {
		return fmt.Errorf("%w: Sockets is %v; use SocketsNone, SocketsUnix or SocketsAll", ErrOptions, o.Sockets)
	}
	return nil
}
