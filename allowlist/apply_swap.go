// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// swap makes one staged change visible in one step, and then looks at what came out. That is a compare-and-swap: if it
// was not the judged file, the swap is undone.
func (x *txn) swap(s *stagedChange) error {
	if err := x.step("swap"); err != nil {
		return err
	}
	d := s.parent.dir
	switch s.Op {
	case Create:
		if err := d.place(s.temp, s.base); err != nil {
			return err
		}
		x.undo = append(x.undo, func() error { return withdraw(s) })
		return x.step("placed")
	case Modify:
		if err := x.lookBefore(s); err != nil {
			return err
		}
		if err := d.exchange(s.temp, s.base); err != nil {
			return err
		}
		x.undo = append(x.undo, func() error { return exchangeBack(s) })
	case Delete:
		if err := d.place(s.base, s.temp); err != nil {
			return err
		}
		x.undo = append(x.undo, func() error { return d.place(s.temp, s.base) })
	}
	if err := x.step("swapped"); err != nil {
		return err
	}
	content, m, err := targetIn(d, s.Op, s.temp, x.tree.opts.MaxRead)
	if err == nil {
		err = unchanged(s.change, content, m)
	}
	return asDenial(s.change, err)
}

// lookBefore spares most exchanges that would have to be undone, and is all that the portable walk has.
func (x *txn) lookBefore(s *stagedChange) error {
	m, err := s.parent.dir.lstat(s.base)
	if isAbsent(err) {
		err = &refusal{ErrConflict, "the file is gone"}
	} else if err == nil {
		err = refuseKind(s.base, m.kind, kindFile)
	}
	return asDenial(s.change, err)
}

// undoTries bounds the undo against somebody who renames in a loop; with the pauses it lasts a fraction of a second.
const undoTries = 128

// exchangeBack puts the old file back and takes ours out. Under attack something else may come out; then it goes back
// in and the exchange is tried again, until what comes out is ours.
func exchangeBack(s *stagedChange) error {
	d := s.parent.dir
	old, err := d.lstat(s.temp)
	if err != nil {
		return err
	}
	for try := range undoTries {
		err := d.exchange(s.temp, s.base)
		if isAbsent(err) {
			// Somebody removed our file: the old one only has to go back to its name.
			err = d.place(s.temp, s.base)
			if err == nil {
				return nil
			}
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if m, err := d.lstat(s.temp); err == nil && m.same(s.ours) {
			return nil // the undo step of the staging removes it
		}
		pause(try)
	}
	return s.settle(old)
}

// settle ends an undo that never got our file back: at least the old one shall have its name.
func (s *stagedChange) settle(old meta) error {
	d := s.parent.dir
	var err error
	if m, lerr := d.lstat(s.base); lerr == nil && !m.same(old) {
		err = d.exchange(s.temp, s.base)
	}
	if m, lerr := d.lstat(s.temp); lerr == nil && (m.kind == kindLink || m.kind == kindFile && m.nlink > 1) {
		// No content is lost: the file has another name, and a link was put here during the undo.
		err = errors.Join(err, d.remove(s.temp))
	}
	return errors.Join(err, fmt.Errorf("%+q was replaced by somebody else during the undo; a file that was found "+
		"and has no other name is at %+q", s.Path, join(s.parent.path, s.temp)))
}

// withdraw removes a created file, but only if it is ours: it is taken aside first and looked at there.
func withdraw(s *stagedChange) error {
	d := s.parent.dir
	for try := range undoTries {
		err := d.place(s.base, s.temp)
		if isAbsent(err) {
			return nil // somebody removed or moved it
		}
		if err != nil {
			return err
		}
		m, err := d.lstat(s.temp)
		if err != nil {
			return err
		}
		if m.same(s.ours) {
			return nil // the undo step of the staging removes it
		}
		if err := d.place(s.temp, s.base); err != nil {
			return err
		}
		pause(try)
	}
	return fmt.Errorf("%+q was replaced by somebody else during the undo", s.Path)
}

// pause lets the other side run, once it is clear that there is one.
func pause(try int) {
	if try >= 4 {
		time.Sleep(200 * time.Microsecond)
	}
}
