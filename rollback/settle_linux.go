// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
	"github.com/evoseal/containment/rollback/internal/scan"
)

// makeStaging makes the directory in the root in which everything is staged. It is on the tree's file system, so that
// names can be exchanged with it.
func (r *restorer) makeStaging() error {
	if err := r.openRoot(); err != nil {
		return err
	}
	if r.journal.Staging == "" {
		r.journal.Staging = stagingName(stagingTag(r.s.id, r.target.key), &r.found.Root.Entry)
	}
	if err := r.s.try("mkdir"); err != nil {
		return err
	}
	err := fsys.Retry(func() error { return unix.Mkdirat(r.target.fd, r.journal.Staging, 0o700) })
	if err != nil {
		return err
	}
	if err := r.openStaging(); err != nil {
		return err
	}
	dropACL(r.staging)
	return nil
}

func (r *restorer) openStaging() (err error) {
	r.staging, err = fsys.OpenBeneath(r.target.fd, r.journal.Staging, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	return err
}

// usedBit of the mode of staging says that something of the tree may be in it. It is set after the commit and before
// the first rename: without it everything in staging is ours.
const usedBit = unix.S_ISVTX

func (r *restorer) useStaging() error {
	if err := r.s.try("chmod"); err != nil {
		return err
	}
	return fsys.Retry(func() error { return unix.Fchmod(r.staging, usedBit|0o700) })
}

func (r *restorer) stagingUsed() (bool, error) {
	st, err := fsys.Fstat(r.staging)
	return st.Mode&usedBit != 0, err
}

func (r *restorer) closeStaging() {
	if r.staging >= 0 {
		unix.Close(r.staging)
		r.staging = -1
	}
}

// undo removes staging before the commit: nothing in it was ever in the tree.
func (r *restorer) undo() error {
	r.step("undo")
	var errs []error
	if r.staging >= 0 {
		for i := range r.journal.Slots {
			err := unix.Unlinkat(r.staging, strconv.Itoa(i), 0)
			if err != nil && err != unix.ENOENT {
				errs = append(errs, err)
			}
		}
		_ = unix.Unlinkat(r.staging, probeName, 0) // seldom there
		r.closeStaging()
	}
	root := &r.found.Root.Entry
	if r.journal.Staging != "" {
		if err := r.noteRoot(root); err != nil { // it matters only if this process dies within the next lines
			errs = append(errs, err)
		}
		err := unix.Unlinkat(r.target.fd, r.journal.Staging, unix.AT_REMOVEDIR)
		if err != nil && err != unix.ENOENT {
			errs = append(errs, err)
		}
	}
	r.step("undone")
	errs = append(errs, fsys.SetTime(r.target.fd, root.Sec, root.Nsec))
	return errors.Join(append(errs, r.closeRoot())...)
}

// finish cleans up when the tree is what the checkpoint holds. What was displaced and is in the store is unlinked in
// staging, the rest goes to quarantine; the root gets its time back; all is flushed; and only then the journal goes.
// A crash before leaves a journal by which everything is found done already.
func (r *restorer) finish(ctx context.Context) error {
	if err := r.settle(ctx); err != nil {
		return err
	}
	r.step("settled")
	if err := r.dropStaging(); err != nil {
		return err
	}
	r.step("dropped")
	for _, o := range r.journal.Opened {
		if err := r.chmodDir(o.Path, o.Mode); err != nil && !moved(err) {
			return err
		}
		r.synced[o.Path] = true
	}
	if err := r.setRoot(); err != nil {
		return err
	}
	if err := r.syncTree(r.synced); err != nil {
		return err
	}
	r.step("flushed")
	if err := r.forgetRoot(); err != nil {
		return err
	}
	name := journalPath(r.target.key)
	if err := r.s.dir.Remove(name); err != nil {
		return err
	}
	r.step("removed")
	if err := r.s.dir.SyncDir(parentOf(name)); err != nil {
		return err
	}
	r.step("finished")
	// What follows is comfort: the restore has ended.
	history := label{Op: labelRestore, ID: r.id, Tree: r.target.key, Safety: r.journal.Safety}
	if err := r.s.addLabel(ctx, history); err != nil {
		r.s.log.Warn("rollback: the history of the store lacks a restore", "error", err)
	}
	if err := r.s.saveCache(r.target, r.found); err != nil {
		r.s.log.Warn("rollback: the cache was not written", "error", err)
	}
	return nil
}

// settle goes through staging and tells what the store has from what it has not.
func (r *restorer) settle(ctx context.Context) error {
	if r.staging < 0 {
		return nil
	}
	names, err := listNames(r.staging)
	if err != nil {
		return err
	}
	// First all are judged, then the first is unlinked: names of one file would otherwise change it for each other.
	why := make([]string, len(names))
	err = parallel(ctx, r.s.options.Workers, len(names), func(i int) error {
		why[i] = r.judge(names[i])
		return nil
	})
	if err != nil {
		return err
	}
	var strange []stranger
	for i, name := range names {
		if why[i] != "" {
			strange = append(strange, stranger{name: name, path: r.pathOf(name), why: why[i]})
			continue
		}
		if err := r.s.try("unlink"); err != nil {
			return err
		}
		if err := fsys.Retry(func() error { return unix.Unlinkat(r.staging, name, 0) }); err != nil {
			return err
		}
	}
	if len(strange) == 0 {
		return nil
	}
	slices.SortFunc(strange, func(a, b stranger) int { return strings.Compare(a.path, b.path) })
	return r.quarantine(ctx, strange)
}

// stranger is something in staging that the store does not have.
type stranger struct{ name, path, why string }

// slotOf returns the slot that a name in staging is for.
func (r *restorer) slotOf(name string) (slot, bool) {
	name, _ = strings.CutSuffix(name, asideSuffix)
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(r.journal.Slots) || strconv.Itoa(i) != name {
		return slot{}, false
	}
	return r.journal.Slots[i], true
}

func (r *restorer) pathOf(name string) string {
	if s, ok := r.slotOf(name); ok {
		return s.Path
	}
	return join(r.journal.Staging, name)
}

// judge returns why the store does not have what a name in staging holds, or nothing if it has. It goes by the bytes: a
// time can be put back by whoever changed the file, and the rename that brought it here moved the time that cannot.
func (r *restorer) judge(name string) string {
	s, ok := r.slotOf(name)
	switch {
	case name == probeName:
		return ""
	case !ok && r.ours(name, false): // staged for a journal that was not written any more
		return ""
	case !ok:
		return "not made by a restore"
	case s.Foreign != "":
		return s.Foreign
	}
	k, err := r.look(name)
	switch {
	case err != nil:
		return "unreadable: " + err.Error()
	case k.Kind == 0:
		return "appeared after the scan"
	case k == s.Was || k == s.Now:
		return ""
	}
	return "changed after the scan"
}

// look hashes a file or reads a link. Anything else is the zero value.
func (r *restorer) look(name string) (known, error) {
	st, err := fsys.Lstat(r.staging, name)
	if err != nil {
		return known{}, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		target, err := readLink(r.staging, name)
		return known{Kind: object.Link, Target: target}, err
	case unix.S_IFREG:
		fd, err := fsys.OpenBeneath(r.staging, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			return known{}, err
		}
		defer unix.Close(fd)
		key, _, err := scan.HashFile(fd)
		return known{Kind: object.File, Data: key}, err
	}
	return known{}, nil
}

func readLink(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax+1)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// listNames lists a directory by a descriptor of its own, so that the offset of the other stays.
func listNames(dir int) ([]string, error) {
	fd, err := fsys.OpenBeneath(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}

// dropStaging removes the directory, or gives it a name by which it is never removed if something had to stay in it.
func (r *restorer) dropStaging() error {
	if r.staging < 0 {
		return nil
	}
	r.closeStaging()
	if err := r.s.try("rmdir"); err != nil {
		return err
	}
	err := fsys.Retry(func() error { return unix.Unlinkat(r.target.fd, r.journal.Staging, unix.AT_REMOVEDIR) })
	if err != unix.ENOTEMPTY {
		return err
	}
	kept := keptPrefix + txid(r.journal.Staging)
	err = fsys.Place(r.target.fd, r.journal.Staging, r.target.fd, kept)
	if err == unix.EEXIST { // the restore was interrupted after it had kept something already
		err = fsys.Place(r.target.fd, r.journal.Staging, r.target.fd, kept+"-"+randomName()[:8])
	}
	return err
}
