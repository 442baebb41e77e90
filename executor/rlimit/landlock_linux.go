// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor/internal/hostrun"
)

// Landlock versions in which something that we rely on appeared.
const (
	abiTruncate = 3
	abiTCP      = 4
	abiIoctl    = 5
	abiScope    = 6
	abiUnixPath = 9
)

// Rights by what they are granted for. A rule on a file may hold only rights that make sense for files.
const (
	readRights  = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	writeRights = readRights | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRefer |
		ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSym |
		ll.AccessFSMakeFifo | ll.AccessFSMakeSock | ll.AccessFSResolveUnix
	deviceRights = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate
	fileRights   = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate |
		ll.AccessFSIoctlDev | ll.AccessFSResolveUnix
)

// devices that a run may use: they hold no state and reach nothing.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// landlock is the part of the rules that is the same for every run.
type landlock struct {
	abi   int
	tcp   bool // TCP is left alone
	reads []place
	paths []string // of reads, links resolved
}

// place is an open file or directory of the host with the rights that a run gets on it and below.
type place struct {
	file   *os.File
	rights uint64
}

// openPlace opens without reading. os.File closes it when the executor is forgotten.
func openPlace(path string, rights uint64) (place, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return place{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return place{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	return place{f, rights}, nil
}

// notRoot refuses the whole file system by whatever name it comes.
func (p place) notRoot() error {
	var st, root unix.Stat_t
	if err := errors.Join(unix.Fstat(int(p.file.Fd()), &st), unix.Stat("/", &root)); err != nil {
		return fmt.Errorf("%s: %w", p.file.Name(), err)
	}
	if st.Dev == root.Dev && st.Ino == root.Ino {
		return fmt.Errorf("%s is the root directory; name what the run needs", p.file.Name())
	}
	return nil
}

// newLandlock opens what every run may see. It returns nil if the kernel has no Landlock, or one that cannot keep a run
// from truncating files.
func newLandlock(c Config) (*landlock, error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil || abi < abiTruncate {
		return nil, nil //nolint:nilnil // absent is a value here
	}
	l := &landlock{abi: abi, tcp: c.Sockets == SocketsAll}
	reads, optional := c.Reads, false
	if reads == nil {
		reads, optional = DefaultReads(), true
	}
	for _, path := range reads {
		err := l.open(path, readRights)
		if err != nil && !(optional && errors.Is(err, fs.ErrNotExist)) {
			return nil, errors.Join(err, l.close())
		}
	}
	for _, path := range devices {
		if err := l.open(path, deviceRights); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

func (l *landlock) open(path string, rights uint64) error {
	p, err := openPlace(path, rights)
	if err != nil {
		return fmt.Errorf("readable path: %w", err)
	}
	l.reads, l.paths = append(l.reads, p), append(l.paths, hostrun.Resolve(path))
	return nil
}

func (l *landlock) close() error {
	var errs []error
	for _, p := range l.reads {
		errs = append(errs, p.file.Close())
	}
	l.reads = nil
	return errors.Join(errs...)
}

// handled returns every right that this kernel knows: what is not granted by a rule is refused.
func (l *landlock) handled() ll.RulesetAttr {
	bits := 13 // EXECUTE to MAKE_SYM, version 1
	for _, abi := range []int{2, abiTruncate, abiIoctl, abiUnixPath} {
		if l.abi >= abi {
			bits++
		}
	}
	attr := ll.RulesetAttr{HandledAccessFS: 1<<bits - 1}
	if l.abi >= abiTCP && !l.tcp {
		attr.HandledAccessNet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	if l.abi >= abiScope {
		attr.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	return attr
}

// ruleset returns a ruleset for one run; the descriptor restricts nobody until the payload's process enforces it.
func (l *landlock) ruleset(more []place) (*os.File, error) {
	attr := l.handled()
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return nil, fmt.Errorf("landlock_create_ruleset: %w", err)
	}
	f := os.NewFile(uintptr(fd), "landlock")
	for _, list := range [][]place{l.reads, more} {
		for _, p := range list {
			rule := ll.PathBeneathAttr{AllowedAccess: p.rights & attr.HandledAccessFS, ParentFd: int(p.file.Fd())}
			if err := ll.LandlockAddPathBeneathRule(fd, &rule, 0); err != nil {
				f.Close()
				return nil, fmt.Errorf("landlock_add_rule %s: %w", p.file.Name(), err)
			}
		}
	}
	return f, nil
}
