// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// applier carries out a list of changes. It works through an os.Root, so no link leads it out of the tree.
type applier struct {
	*plain
	ctx     context.Context
	r       *rollback.Restoration
	sc      *scanner // what was there
	m       manifest
	tree    string
	staging string
	root    *os.Root
	saved   map[string]entry // when a dead process' restore goes on: what the safety checkpoint holds
	count   int
	first   map[string]string // where the first name of a group stands now
}

// apply makes the tree the checkpoint's: away with what is not wanted, deepest first, then in with what is.
func (a *applier) apply(list []change) (err error) {
	if a.root, err = os.OpenRoot(a.tree); err != nil {
		return err
	}
	defer a.root.Close()
	dirs := map[string]entry{}
	for _, c := range list { // parents come first
		if err := a.writable(parent(c.path)); err != nil {
			return err
		}
		if c.old != nil && c.old.kind() == unix.S_IFDIR && c.op != rollback.Attributes {
			if err := a.writable(c.path); err != nil {
				return err
			}
		}
	}
	for name, why := range a.sc.foreign {
		if why == "too large" {
			if err := a.displace(name, nil, why); err != nil {
				return err
			}
		}
	}
	for _, c := range slices.Backward(list) {
		a.pace()
		if c.old == nil && a.foreignAt(c.path) || c.old != nil && (c.new == nil || c.new.kind() != unix.S_IFDIR ||
			c.op == rollback.Retype) {
			if err := a.away(c); err != nil {
				return err
			}
		}
	}
	for _, c := range list {
		a.pace()
		if c.new == nil {
			continue
		}
		if c.new.kind() != unix.S_IFDIR {
			if err := a.in(c); err != nil {
				return err
			}
		} else if c.op != rollback.Attributes {
			if err := a.root.Mkdir(c.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return a.directories(dirs)
}

// directories sets modes and times last, deepest first.
func (a *applier) directories(dirs map[string]entry) error {
	lists, err := a.load(a.m)
	if err != nil {
		return err
	}
	for name, e := range flat(lists) {
		if e.kind() == unix.S_IFDIR {
			dirs[name] = e
		}
	}
	dirs["."] = a.m.Root
	var names []string
	for name := range dirs {
		names = append(names, name)
	}
	for _, name := range deepest(names) {
		if a.d == ignoresDirModes {
			continue
		}
		if err := a.times(dirs[name], name); err != nil {
			return err
		}
	}
	return nil
}

// times sets the attributes of a directory through a descriptor, where they differ.
func (a *applier) times(e entry, name string) error {
	if a.d == ignoresRoot && name == "." {
		return nil
	}
	root, err := os.OpenRoot(a.tree)
	if err != nil {
		return err
	}
	defer root.Close()
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	info, err := d.Stat()
	if err != nil {
		return err
	}
	now, err := a.sc.attributes(name, info)
	if e.Data, now.Data = "", ""; err == nil && same(now, e) {
		return nil
	}
	return a.attributes(fmt.Sprintf("/proc/self/fd/%d", d.Fd()), e)
}

// writable lets the owner change a directory; its mode comes back at the end.
func (a *applier) writable(name string) error {
	info, err := a.root.Lstat(name)
	if err != nil || !info.IsDir() || info.Mode()&0o700 == 0o700 {
		return nil
	}
	return a.root.Chmod(name, info.Mode().Perm()|0o700)
}

func (a *applier) foreignAt(name string) bool {
	_, foreign := a.sc.foreign[name]
	return foreign
}

// away moves what stands at a name out of the way and looks at it afterwards.
func (a *applier) away(c change) error {
	if c.old != nil && c.old.kind() == unix.S_IFDIR {
		return a.emptyOut(c)
	}
	if a.d == writesInPlace && c.new != nil && c.op == rollback.Replace && c.new.kind() == unix.S_IFREG {
		return nil
	}
	if a.d == unlinksChanged {
		return a.root.Remove(c.path)
	}
	return a.displace(c.path, c.old, "changed since the scan")
}

// displace moves an entry to staging. If it is what the scan saw, the safety checkpoint has it.
func (a *applier) displace(name string, old *entry, why string) error {
	a.count++
	aside := fmt.Sprintf("aside-%d", a.count)
	if err := a.root.Rename(name, filepath.Base(a.staging)+"/"+aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	at := a.staging + "/" + aside
	if a.saved != nil {
		old = nil // what this scan saw was saved by nobody
		if e, ok := a.saved[name]; ok {
			old = &e
		}
	}
	if old != nil && a.unchanged(at, *old) {
		return nil
	}
	to := fmt.Sprintf("%s/quarantine/%d-%d", a.dir, time.Now().UnixNano(), a.count)
	if err := os.Rename(at, to); err != nil {
		return err
	}
	a.r.Quarantined = append(a.r.Quarantined, rollback.Quarantined{Path: name, Where: to, Why: why})
	return nil
}

func (a *applier) unchanged(at string, old entry) bool {
	switch info, err := os.Lstat(at); {
	case err != nil || sysStat(info).Mode != old.Mode:
		return false
	case old.kind() == unix.S_IFLNK:
		target, err := os.Readlink(at)
		return err == nil && target == string(old.Target)
	case old.Size > wholeFile:
		return info.Size() == old.Size && info.ModTime().Equal(time.Unix(old.Sec, old.Nsec))
	default:
		data, err := os.ReadFile(at)
		return err == nil && fmt.Sprintf("%x", sha256.Sum256(data)) == strings.Split(old.Data, "-")[0]
	}
}

// emptyOut removes a directory whose known entries are gone. What else is in it decides.
func (a *applier) emptyOut(c change) error {
	if a.d == recursiveDelete {
		return a.root.RemoveAll(c.path)
	}
	info, err := a.root.Lstat(c.path)
	if err != nil || !info.IsDir() {
		return a.displace(c.path, nil, "appeared where a directory was")
	}
	dir, err := a.root.Open(c.path)
	if err != nil {
		return err
	}
	list, err := dir.ReadDir(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	kept := false
	for _, d := range list {
		name := c.path + "/" + d.Name()
		keep := a.foreignAt(name) && (a.sc.foreign[name] == "mount" || a.o.Foreign == rollback.ForeignKeep) ||
			slices.ContainsFunc(a.r.Kept, func(f rollback.Foreign) bool { return below(f.Path, name) })
		if kept = kept || keep; keep {
			a.r.Kept = append(a.r.Kept, rollback.Foreign{Path: name, Why: a.sc.foreign[name]})
		} else if err := a.displace(name, nil, "not in the store"); err != nil {
			return err
		}
	}
	if kept {
		return nil
	}
	return a.root.Remove(c.path)
}

// in puts a staged entry at its name.
func (a *applier) in(c change) error {
	name := filepath.Base(a.staging) + "/" + filepath.Base(a.staged(c.path))
	if a.d == writesInPlace && c.op == rollback.Replace && c.new.kind() == unix.S_IFREG {
		data, err := a.get("blobs", c.new.Data)
		if err == nil {
			err = a.root.WriteFile(c.path, data, 0o600)
		}
		if err == nil {
			err = a.attributes(a.tree+"/"+c.path, *c.new)
		}
		return err
	}
	if _, err := a.root.Lstat(c.path); err == nil && a.d != overwritesForeign && a.d != unlinksChanged {
		if err := a.displace(c.path, nil, "appeared since the scan"); err != nil {
			return err
		}
	}
	return a.root.Rename(name, c.path)
}

// pace gives a kill time to come in between.
func (a *applier) pace() {
	if a.d == noJournal || a.d == redoByPosition {
		time.Sleep(300 * time.Microsecond)
	}
}
