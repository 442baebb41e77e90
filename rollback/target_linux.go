// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/internal/lease"
	"github.com/evoseal/containment/rollback/internal/object"
)

// target is a tree that was found to be one: everything was checked on this descriptor, which holds the tree's lock.
type target struct {
	fd    int
	path  string // absolute, without links
	key   string
	named bool // one of Options.Roots: may be restored into from checkpoints of other trees
	file  *os.File
	id    fileID
}

func (t *target) close() { dropLock(t.file) }

// fileID tells one directory from another as long as somebody holds it open.
type fileID struct{ dev, ino uint64 }

func idOf(st *unix.Stat_t) fileID { return fileID{uint64(st.Dev), st.Ino} }

// openTarget opens a tree, waits for its lock until ctx ends, and only then judges it. The error is a *TargetError if
// the directory may not be used for the purpose, and ErrPending if an interrupted restore comes first.
func (s *Store) openTarget(ctx context.Context, tree string, why purpose) (*target, error) {
	abs, err := absolute(tree)
	if err != nil {
		return nil, err
	}
	fd, err := openPlain(tree, abs)
	if err != nil {
		return nil, err
	}
	t := &target{fd: fd, path: abs, file: os.NewFile(uintptr(fd), abs)}
	// A plan and a digest only read, so they do not exclude each other, but what writes.
	exclusive := why != forPlan && why != forDigest
	if err := waitLock(ctx, t.file, lockMode{exclusive: exclusive, wait: true}); err != nil {
		_ = t.file.Close()
		return nil, fmt.Errorf("rollback: lock %s: %w", abs, err)
	}
	err = s.admitTarget(t, tree, why)
	if err == nil && why != forRecover {
		err = s.checkPending(t)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// absolute makes a path absolute without believing $PWD, which may lead through links.
func absolute(tree string) (string, error) {
	if tree == "" || strings.Contains(tree, "\x00") {
		return "", &TargetError{tree, "it is no path; name a directory"}
	}
	if filepath.IsAbs(tree) {
		return filepath.Clean(tree), nil
	}
	var buf [unix.PathMax]byte
	n, err := unix.Getcwd(buf[:])
	if err != nil || n < 2 || buf[0] != '/' { // "(unreachable)" is no path either
		return "", &TargetError{tree, fmt.Sprintf("the working directory has no path (%v); name the tree absolutely", err)}
	}
	return filepath.Join(string(buf[:n-1]), tree), nil
}

// openPlain opens a directory whose path, as it was given, leads through no link.
func openPlain(tree, abs string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	how := unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	var fd int
	err := fsys.Retry(func() (err error) {
		fd, err = unix.Openat2(unix.AT_FDCWD, tree, &how)
		return err
	})
	if err == unix.ENOSYS || err == unix.EPERM {
		fd, err = openByComponent(tree, flags)
	}
	switch err {
	case nil:
		return fd, nil
	case unix.ELOOP:
		return -1, &TargetError{abs, "its path leads through a link; name the directory itself"}
	case unix.ENOTDIR:
		return -1, &TargetError{abs, "it is not a directory, or its path leads through a link or something else that is none"}
	}
	failed := &fs.PathError{Op: "open", Path: abs, Err: err}
	if err == unix.EACCES { // most of what nobody may use cannot even be opened
		return -1, fmt.Errorf("%w: %w", &TargetError{abs, "this user cannot list it"}, failed)
	}
	return -1, fmt.Errorf("rollback: %w", failed)
}

// openByComponent is for kernels before 5.6, and where a filter refuses openat2.
func openByComponent(tree string, flags int) (int, error) {
	const through = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	start := "."
	if filepath.IsAbs(tree) {
		start = "/"
	}
	at, err := unix.Open(start, through, 0)
	for name := range strings.SplitSeq(tree, "/") {
		if err != nil {
			return -1, err
		}
		if name == "" {
			continue
		}
		above := at
		at, err = unix.Openat(above, name, through, 0)
		unix.Close(above)
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	return unix.Openat(at, ".", flags, 0)
}

// admitTarget decides about an open directory and fills in its key.
func (s *Store) admitTarget(t *target, asked string, why purpose) error {
	st, err := fsys.Fstat(t.fd)
	if err != nil {
		return fmt.Errorf("rollback: %s: %w", t.path, err)
	}
	t.id = idOf(&st)
	// Both spellings must lead here, now that the lock is held: the caller's own may have gone through a link, which
	// cleaning it has hidden, and the directory may have been moved while the lock was waited for.
	for _, p := range []string{asked, t.path} {
		var now unix.Stat_t
		if err := unix.Stat(p, &now); err != nil || idOf(&now) != t.id {
			return &TargetError{t.path, fmt.Sprintf("%q does not lead to it, or not any more; name the directory itself", p)}
		}
	}
	if reason := s.refusal(t, &st); reason != "" {
		return &TargetError{t.path, reason}
	}
	r, err := identify(t, &st)
	if err != nil {
		return err
	}
	t.key = r.key()
	t.named = slices.Contains(s.options.Roots, t.path)
	return s.checkRegistration(t, r, why)
}

// identify says which directory it is.
func identify(t *target, st *unix.Stat_t) (registration, error) {
	fsStat, err := fsys.Statfs(t.fd)
	if err != nil {
		return registration{}, fmt.Errorf("rollback: %s: %w", t.path, err)
	}
	boot, err := lease.BootID()
	if err != nil {
		boot = "" // then the device counts whatever happens
	}
	r := registration{
		Version: registrationVersion, Path: []byte(t.path), Inode: st.Ino, Device: uint64(st.Dev), Boot: boot,
		FS: int64(fsStat.Type),
	}
	var x unix.Statx_t
	err = unix.Statx(t.fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &x)
	if err == nil && x.Mask&unix.STATX_BTIME != 0 {
		r.Born = x.Btime.Sec*1e9 + int64(x.Btime.Nsec)
	}
	return r, nil
}

// checkRegistration compares the directory with the marker, or makes one where the purpose allows.
func (s *Store) checkRegistration(t *target, r registration, why purpose) error {
	known, err := s.registered(t.key)
	switch {
	case err == nil && known.FS != r.FS, err == nil && known.Boot == r.Boot && known.Device != r.Device:
		return &TargetError{t.path, "another file system is mounted there than when it was registered"}
	case err == nil:
		t.named = t.named || known.Named
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	switch why {
	case forDigest:
		return s.checkNesting(t)
	case forCheckpoint:
	case forRestore, forPlan:
		if !t.named {
			return &TargetError{t.path, "no checkpoint of this directory was ever taken with this store, " +
				"or another one stood there then; add it to Options.Roots to fill it while it is empty"}
		}
		if names, err := listNames(t.fd); err != nil || len(names) > 0 {
			reason := fmt.Sprintf("it is named in Options.Roots but not empty (%d entries, %v)", len(names), err)
			return &TargetError{t.path, reason}
		}
		r.Named = true
	default:
		return &TargetError{t.path, "it is not a tree of this store"}
	}
	if err := s.checkNesting(t); err != nil || why == forPlan {
		return err
	}
	return s.register(r)
}

// checkPending refuses a tree with an unfinished restore.
func (s *Store) checkPending(t *target) error {
	_, err := s.dir.Lstat(journalPath(t.key))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("rollback: %w", err)
	}
	return fmt.Errorf("rollback: %s: %w", t.path, ErrPending)
}

// inGit reports whether a path has a component that is a repository's own.
func inGit(abs string) bool {
	return slices.ContainsFunc(strings.Split(strings.TrimPrefix(abs, "/"), "/"), func(name string) bool {
		return name != "" && object.IsGit(name)
	})
}
