// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
)

// setAttributes gives what a handle holds its owner, extended attributes, mode and time, in this order: a new owner
// takes set-id bits away, attributes need the right to write, and every one of them can move the time.
func (r *restorer) setAttributes(fd int, op *operation) error {
	e := &op.want
	if err := r.setOwner(fd, op); err != nil {
		return err
	}
	if e.Kind != object.Link {
		if r.manifest.Xattrs {
			if err := setXattrs(fd, e.Xattrs); err != nil {
				return err
			}
		}
		if err := r.s.try("chmod"); err != nil {
			return err
		}
		if err := fsys.ChmodHandle(fd, e.Mode); err != nil {
			return err
		}
	}
	if e.Kind == object.File && r.journal.MTime == MTimeTouch {
		return nil
	}
	return fsys.SetTime(fd, e.Sec, e.Nsec)
}

// setOwner follows the checkpoint if it has owners, as it always has for files with set-id bits. Without them a new file
// of root belongs to whom the file belonged that it replaces, or the directory that it is in: a tree that root brings
// back must stay its user's.
func (r *restorer) setOwner(fd int, op *operation) error {
	uid, gid := op.want.UID, op.want.GID
	if !r.manifest.Owner && !setID(&op.want) {
		if op.do == doAttributes && op.was != nil || op.like == nil || os.Geteuid() != 0 {
			return nil
		}
		uid, gid = op.like.Stat.UID, op.like.Stat.GID
	}
	st, err := fsys.Fstat(fd)
	if err != nil || st.Uid == uid && st.Gid == gid {
		return err
	}
	return fsys.ChownHandle(fd, int(uid), int(gid))
}

// setID reports whether a file runs with the rights of its owner or group.
func setID(e *object.Entry) bool { return e.Kind == object.File && e.Mode&0o6000 != 0 }

// checkOwners: only root can give files away.
func (r *restorer) checkOwners(p *plan) error {
	euid := os.Geteuid()
	if euid == 0 {
		return nil
	}
	if r.manifest.Owner {
		return fmt.Errorf("%w: the checkpoint has owners, which root alone can restore", ErrUnsupported)
	}
	groups, err := os.Getgroups()
	if err != nil {
		return err
	}
	groups = append(groups, os.Getegid())
	for _, op := range slices.Concat(p.put, p.set) {
		if setID(&op.want) && (int(op.want.UID) != euid || !slices.Contains(groups, int(op.want.GID))) {
			return fmt.Errorf("%w: %q has set-id bits and belongs to %d:%d, to whom root alone can give it",
				ErrUnsupported, op.path, op.want.UID, op.want.GID)
		}
	}
	return nil
}

// keeps reports an error if what was set did not stay as it was set. Some file systems keep no fractions of a second, no
// far-off years or no modes, and say nothing. Applied to a tree this would never come to an end.
func (r *restorer) keeps(fd int, op *operation) error {
	st, err := fsys.Fstat(fd)
	if err != nil {
		return err
	}
	e := &op.want
	timed := e.Kind != object.File || r.journal.MTime == MTimeExact
	if timed && (st.Mtim.Sec != e.Sec || uint32(st.Mtim.Nsec) != e.Nsec) {
		return fmt.Errorf("%w: the tree's file system keeps the time %d.%09d of %q as %d.%09d",
			ErrUnsupported, e.Sec, e.Nsec, op.path, st.Mtim.Sec, st.Mtim.Nsec)
	}
	if mode := uint32(st.Mode) & 0o7777; e.Kind != object.Link && mode != e.Mode {
		return fmt.Errorf("%w: the tree's file system, or the user's groups, keep the mode %#o of %q as %#o",
			ErrUnsupported, e.Mode, op.path, mode)
	}
	return nil
}

// tryDirs does so for directories, with staging in their place, where the tree can be on another file system than the one
// that was captured.
func (r *restorer) tryDirs(p *plan) error {
	if r.manifest.TreeKey == r.target.key {
		return nil
	}
	defer func() {
		if r.manifest.Xattrs {
			_ = setXattrs(r.staging, nil)
		}
		_ = unix.Fchmod(r.staging, 0o700)
	}()
	for i := range p.set {
		op := &p.set[i]
		if op.want.Kind != object.Dir {
			continue
		}
		if r.manifest.Xattrs {
			if err := setXattrs(r.staging, op.want.Xattrs); err != nil {
				return fmt.Errorf("%w: extended attributes of %q: %w", ErrUnsupported, op.path, err)
			}
		}
		if err := fsys.ChmodHandle(r.staging, op.want.Mode); err != nil {
			return err
		}
		if err := fsys.SetTime(r.staging, op.want.Sec, op.want.Nsec); err != nil {
			return err
		}
		if err := r.keeps(r.staging, op); err != nil {
			return err
		}
	}
	return nil
}

// captured are the attributes that a checkpoint holds and a restore may change.
func captured(name string) bool {
	return strings.HasPrefix(name, "user.") || name == "system.posix_acl_access" || name == "system.posix_acl_default"
}

// setXattrs makes the captured attributes these and no others. The calls take no O_PATH handle, but its name in /proc.
func setXattrs(fd int, want []object.Xattr) error {
	path := "/proc/self/fd/" + strconv.Itoa(fd)
	have, err := listXattrs(path)
	if err != nil && (len(want) > 0 || err != unix.EOPNOTSUPP) {
		return err
	}
	for _, name := range have {
		if captured(name) && !slices.ContainsFunc(want, func(x object.Xattr) bool { return x.Name == name }) {
			if err := unix.Removexattr(path, name); err != nil && err != unix.ENODATA {
				return err
			}
		}
	}
	for _, x := range want {
		if err := unix.Setxattr(path, x.Name, []byte(x.Value), 0); err != nil {
			return err
		}
	}
	return nil
}

func listXattrs(path string) ([]string, error) {
	buf := make([]byte, 1<<16) // XATTR_LIST_MAX
	n, err := unix.Listxattr(path, buf)
	if err != nil || n == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00"), nil
}

// dropACL takes the access control lists from the staging directory that it has from its parent, so that what is made
// in it gets none.
func dropACL(fd int) {
	for _, name := range []string{"system.posix_acl_default", "system.posix_acl_access"} {
		_ = unix.Fremovexattr(fd, name) // ENODATA and EOPNOTSUPP are the usual answers; after any other the mode still holds
	}
}
