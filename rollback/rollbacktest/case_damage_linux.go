// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/evoseal/containment/rollback"
)

// damageCases are about a store that is no longer what was written. They know nothing of its format: they change every
// file that it has.
func damageCases() []Case {
	return []Case{
		newCase("S1", "flipped-bits", 0, "a changed bit in the store becomes another tree", flippedBits),
		newCase("S2", "missing-files", 0, "a file of the store that is missing, short, empty or another's is not noticed",
			missingFiles),
		newCase("S3", "hostile-names", 0, "a name in the store leads out of the tree or into .git", hostileNames),
		newCase("S4", "all-faults", Verifies, "verification stops at the first fault", allFaults),
		newCase("S5", "nothing-executable", 0, "the store can be run or read by others", nothingExecutable),
	}
}

// storeFiles lists the store's files that hold something, relative to it.
func (s *scene) storeFiles() (names []string) {
	s.must(filepath.WalkDir(s.store(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > 0 {
			names = append(names, path[len(s.store())+1:])
		}
		return err
	}))
	return names
}

// damaged lets the store be damaged and then asks for the good tree while a bad one stands. Right is what was there, or
// an error and the bad tree as it is.
type damaged struct {
	*scene
	id        rollback.ID
	good, bad Tree
	saved     string // a copy of the whole store
	found     int    // how often the damage was an error
}

// toDamage makes a small store with two checkpoints.
func toDamage(s *scene) *damaged {
	s.opt.Codec = rollback.CodecNone
	s.file("qqqq", "content of q").file("dir/wwww", "content of w").link("link", "qqqq").chmod("dir/wwww", 0o600)
	d := &damaged{scene: s, saved: s.dir + "/saved"}
	d.good = s.look()
	d.id = s.checkpoint(s.subject()).ID
	s.file("qqqq", "other").file("dir/xxxx", "content of x").remove("link")
	s.checkpoint(s.again())
	s.file("dir/zzzz", "unsaved")
	d.bad = s.look()
	s.close()
	s.must(os.CopyFS(d.saved, os.DirFS(s.store())))
	return d
}

// try judges one damage.
func (d *damaged) try(what string, damage func()) {
	defer func() { // the store and the tree as they were, whatever happened
		d.close()
		d.must(removeAll(d.store()), os.CopyFS(d.store(), os.DirFS(d.saved)))
		d.remove("dir", "link").file("qqqq", "other").file("dir/wwww", "content of w").chmod("dir/wwww", 0o600)
		d.file("dir/xxxx", "content of x").file("dir/zzzz", "unsaved")
		d.must(d.err)
	}()
	d.bad = d.look()
	damage()
	o := d.opt
	sub, err := d.open(d.store(), &o)
	if err == nil {
		d.subs = append(d.subs, sub)
		if _, err = sub.Restore(d.ctx, d.id, d.tree); errors.Is(err, rollback.ErrPending) {
			d.fail("%s: the restore failed after its commit point: %v", what, err)
		}
	}
	if err == nil {
		d.same(what+": the tree after the restore", d.good, d.look())
		return
	}
	d.found++
	d.same(what+": the tree after "+err.Error(), d.bad, d.look())
	d.want(!errors.Is(err, rollback.ErrPending), "%s: %v", what, err)
}

func flippedBits(s *scene) {
	d := toDamage(s)
	names := s.storeFiles()
	var all int
	for _, name := range names {
		data, err := os.ReadFile(s.store() + "/" + name)
		s.must(err)
		all += len(data)
	}
	const trials = 100 // the store's own tests flip each bit
	step := max(1, all/trials)
	at := 0
	for _, name := range names {
		path := s.store() + "/" + name
		data, err := os.ReadFile(path)
		s.must(err)
		for ; at < len(data); at += step {
			bad := bytes.Clone(data)
			bad[at] ^= 1 << (at / step % 8)
			d.try(fmt.Sprintf("bit %d of byte %d of %s", at/step%8, at, name), func() { s.must(overwrite(path, bad)) })
		}
		at -= len(data)
	}
	s.want(d.found > 0, "no damage of the store was an error")
}

// overwrite changes a file of the store in place; a store may have made it read-only.
func overwrite(path string, data []byte) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path, data, 0o600), os.Chmod(path, info.Mode().Perm()))
}

func missingFiles(s *scene) {
	d := toDamage(s)
	names := s.storeFiles()
	for _, name := range names {
		path := s.store() + "/" + name
		data, err := os.ReadFile(path)
		s.must(err)
		d.try(name+" is missing", func() { s.must(os.Remove(path)) })
		d.try(name+" is all zeros", func() { s.must(overwrite(path, make([]byte, len(data)))) })
		d.try(name+" has a tail", func() { s.must(overwrite(path, append(bytes.Clone(data), "tail"...))) })
		for i := range 4 {
			length := len(data) * i / 4
			d.try(fmt.Sprintf("%s ends after %d bytes", name, length), func() { s.must(overwrite(path, data[:length])) })
		}
		d.try(name+" is short by one", func() { s.must(overwrite(path, data[:len(data)-1])) })
		for _, other := range names {
			if other != name && filepath.Dir(other) == filepath.Dir(name) {
				swapped, err := os.ReadFile(s.store() + "/" + other)
				s.must(err)
				d.try(name+" has the bytes of "+other, func() { s.must(overwrite(path, swapped)) })
			}
		}
	}
	s.want(d.found > 0, "no damage of the store was an error")
}

// hostileNames puts other names of the same length into every file of the store.
func hostileNames(s *scene) {
	d := toDamage(s)
	hits := 0
	for _, hostile := range []string{".git", ".GIT", "../q", "/etc", "q/..", "q\x00qq", "wwww"} {
		d.try("the name "+hostile, func() {
			for _, name := range s.storeFiles() {
				data, err := os.ReadFile(s.store() + "/" + name)
				s.must(err)
				if bad := bytes.ReplaceAll(data, []byte("qqqq"), []byte(hostile)); !bytes.Equal(bad, data) {
					s.must(overwrite(s.store()+"/"+name, bad))
					hits++
				}
			}
		})
	}
	s.want(hits == 0 || d.found > 0, "names in the store were changed, and nothing was an error")
}

// allFaults damages what each of three checkpoints added.
func allFaults(s *scene) {
	sub := s.subject()
	known := map[string]bool{}
	var victims []string
	for i := range 3 {
		s.file(fmt.Sprint("f", i), fmt.Sprint("unique content ", i, bytes.Repeat([]byte{byte(i)}, 3000)))
		s.checkpoint(sub)
		var largest string
		var size int64
		for _, name := range s.storeFiles() {
			info, err := os.Stat(s.store() + "/" + name)
			s.must(err)
			if !known[name] && info.Size() > size {
				largest, size = name, info.Size()
			}
			known[name] = true
		}
		s.want(largest != "", "a checkpoint with new bytes adds no file")
		victims = append(victims, largest)
	}
	err := sub.(Verifier).Verify(s.ctx, rollback.ID{})
	s.want(err == nil, "verify of a whole store: %v", err)
	s.close()
	for _, name := range victims {
		data, err := os.ReadFile(s.store() + "/" + name)
		s.must(err)
		data[len(data)/3] ^= 0x10
		s.must(overwrite(s.store()+"/"+name, data))
	}
	o := s.opt
	sub, err = s.open(s.store(), &o)
	if err == nil {
		s.subs = append(s.subs, sub)
		err = sub.(Verifier).Verify(s.ctx, rollback.ID{})
	}
	s.refused("verify of three damaged files", err, rollback.ErrCorrupt)
	objects := map[string]bool{}
	corruptions(err, objects)
	s.want(len(objects) >= 3, "three files are damaged, the error names %d: %v", len(objects), err)
}

// corruptions collects what every *CorruptError in the tree of errors names.
func corruptions(err error, objects map[string]bool) {
	if c, ok := err.(*rollback.CorruptError); ok {
		objects[c.Object] = true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		corruptions(e.Unwrap(), objects)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			corruptions(one, objects)
		}
	}
}

func nothingExecutable(s *scene) {
	s.file("run", "#!/bin/sh\n").chmod("run", 0o777).file("f", "f").chmod("f", 0o666)
	sub := s.subject()
	c := s.checkpoint(sub)
	s.file("run", "other")
	s.restore(sub, c.ID)
	files := s.lookAt(s.store())
	for _, name := range slices.Sorted(maps.Keys(files)) {
		mode := fs.FileMode(files[name].Mode & 0o777)
		s.want(mode&0o077 == 0, "%s in the store has the mode %o: others can get at it", name, mode)
		s.want(files[name].Mode&0o170000 == 0o040000 || mode&0o111 == 0, "%s in the store can be run: mode %o", name, mode)
	}
}
