// SPDX-License-Identifier: Apache-2.0

package rlimit

import "log/slog"

// Config says how an [Executor] works. The zero value is the strictest and needs nothing but Linux; every field that is
// set to something else is in the reported capabilities.
type Config struct {
	// StateDir holds the leases of running and crashed runs. All executors of one user should share it, so that each
	// removes what a killed one left. Default: /run/containment for root if /run is in memory, else containment-UID in
	// /dev/shm or, if that is not in memory either, in the temporary directory. It must belong to the caller and be
	// writable by nobody else; it is created if necessary.
	StateDir string

	// ScratchDir is where private copies live. Default: the directory "scratch" in StateDir if that is set or if every run
	// mounts a file system of its own, held in memory and sized by Limits.Disk; else containment-UID/scratch in the
	// temporary directory.
	ScratchDir string

	// DiskScratch puts the copies on the file system of ScratchDir itself: for workspaces that are large beside the
	// memory, or where reflinks make copies free. DiskBounded is then not promised.
	DiskScratch bool

	// WorkspaceBytes and WorkspaceFiles bound what is copied for one run; a larger workspace is a set-up error.
	// Defaults: 2 GiB and 500,000.
	WorkspaceBytes, WorkspaceFiles int64

	// FirstUID and UIDs are the range of uids (and equal gids) reserved for runs of a root caller, one for each concurrent
	// run. Nothing else on the host may use them, or a run could be killed for one of ours, or the other way round.
	// Executors may share them, whatever their StateDir: the locks are in the directory "uids" of root's default StateDir,
	// or of this StateDir where /run is not the caller's, as in a user namespace. Containers that have uids in common but
	// not that directory need ranges of their own. Defaults: 65200 and 256.
	FirstUID, UIDs int

	// Reads are files and directories that every run may read and execute from, instead of DefaultReads. Without Landlock
	// this has no effect, and HostFilesHidden is not promised.
	Reads []string

	// Sockets says which sockets a run may open. The zero value is none, on which NetworkOff rests.
	Sockets Sockets

	// PathMetadata lets runs of an ordinary caller change mode, owner, times and extended attributes by path. Landlock
	// does not restrict these calls, so a run with the caller's uid could use them on any file of the caller;
	// WorkspaceIsolated is then not promised. It has no effect for a root caller, whose runs own nothing outside.
	PathMetadata bool

	// Logger gets what happens outside of runs: leftovers swept, limits that this host cannot enforce. Nil discards.
	Logger *slog.Logger
}

// Sockets says which address families a run may open. A connected pair (socketpair) is always possible.
type Sockets uint8

const (
	// SocketsNone: no sockets.
	SocketsNone Sockets = iota
	// SocketsUnix: AF_UNIX. Sockets in readable directories of the host can be met; NetworkOff is not promised, and
	// HostFilesHidden only where Landlock covers sockets.
	SocketsUnix
	// SocketsAll: AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK. The host's network is reachable.
	SocketsAll
)

// DefaultReads are the files and directories of the host that a run may read, as far as they exist: programs, libraries
// and what the C library needs to start. /proc is there because runtimes read it; it shows the processes of the host.
func DefaultReads() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
		"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/timezone",
		"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/mime.types", "/etc/hosts", "/etc/protocols", "/etc/services",
		"/proc",
	}
}
