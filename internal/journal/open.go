// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
)

// Create makes a new journal whose first line carries header, a JSON object, and opens it. ErrExist if there is one;
// ErrCorrupt if there was one. After a crash on the way Open finds a complete journal with no records, or ErrNotExist; then
// Create may be called again.
func Create(cfg Config, header []byte) (*Journal, error) {
	cfg, err := cfg.checked("create")
	if err != nil {
		return nil, err
	}
	j := &Journal{cfg: cfg, header: Header{Kind: cfg.Kind, ID: cfg.ID, Payload: bytes.Clone(header)}}
	return j.opening(j.create())
}

// opening ends Create and Open: after an error nothing stays open.
func (j *Journal) opening(err error) (*Journal, error) {
	if err != nil {
		return nil, errors.Join(err, j.files.close())
	}
	j.opened = true
	return j, nil
}

func (j *Journal) create() (err error) {
	const op = "create"
	line, err := j.firstLine(op, j.header, [32]byte{})
	if err != nil {
		return err
	}
	f := &j.files
	if f.fs, err = openFS(j.cfg, op, true); err != nil {
		return err
	}
	// Before the marker is made: one that is missing must not come back beside a journal, where a writer may be at work
	// with the lock on the old one.
	if err := j.absent(op); err != nil {
		return err
	}
	if err := f.openMarker(j.cfg, op, CreateOrOpen); err != nil {
		return err
	}
	if err := j.absent(op); err != nil { // another Create may have ended since
		return err
	}
	if f.started {
		return j.refuse(op, ErrCorrupt, "it was complete once and is missing", fixRestore)
	}
	// The marker's name first: a journal without it counts as damaged.
	if err := f.fs.Sync(); err != nil {
		return wrap(op, j.cfg.Dir, "the directory cannot be synced", err)
	}
	if f.journal, err = f.begin(j.cfg, line); err != nil {
		return wrap(op, j.cfg.path(suffixNew), "the first line cannot be written", err)
	}
	if err := f.fs.Rename(j.cfg.Name+suffixNew, j.cfg.Name+suffixJournal); err != nil {
		return wrap(op, j.cfg.path(suffixJournal), "it cannot be put in its place", err)
	}
	j.size, j.head = int64(len(line)), headAt(0, line)
	if err := j.finishCreation(op); err != nil {
		return err
	}
	return j.inPlace(op)
}

// absent fails if there is anything in the journal's place.
func (j *Journal) absent(op string) error {
	there, err := j.files.fs.Open(j.cfg.Name+suffixJournal, ReadOnly)
	switch {
	case err == nil:
		return errors.Join(j.refuse(op, ErrExist, "it is there", "Open it, or choose another name"), there.Close())
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return wrap(op, j.cfg.path(suffixJournal), "what is in its place cannot be opened", err)
}

// finishCreation makes the journal's name durable and then says so in the marker.
func (j *Journal) finishCreation(op string) error {
	err := j.files.fs.Sync()
	if err == nil {
		err = writeAt(j.files.created, []byte(marker), 0)
	}
	if err == nil {
		err = j.files.created.Sync()
	}
	return wrap(op, j.cfg.path(suffixCreated), "the creation cannot be made durable", err)
}

// firstLine checks the caller's objects and the limits.
func (j *Journal) firstLine(op string, h Header, prev [32]byte) ([]byte, error) {
	line, err := encodeHeader(h, prev)
	if err != nil {
		return nil, &Error{Op: op, Path: j.cfg.path(suffixJournal), Rule: "the header cannot be encoded", Kind: ErrInvalid, Err: err}
	}
	if most := min(MaxHeader, j.cfg.MaxSize); int64(len(line)) > most {
		rule := fmt.Sprintf("the first line would have %d bytes, and %d are allowed", len(line), most)
		return nil, j.refuse(op, ErrTooLarge, rule, "say less in it")
	}
	// Nothing is written that could not be read again.
	if _, rule := parseHeader(line, h.Kind, h.ID); rule != "" {
		return nil, j.refuse(op, ErrInvalid, "header and snapshot must be JSON objects on one line", "correct the caller")
	}
	return line, nil
}

// Open opens a journal that exists, takes the lock, verifies every line, cuts off an unfinished record and notes that in
// a record of its own. What it has read is durable when it returns. ErrNotExist if there never was one; ErrFull if the
// file is larger than MaxSize allows.
func Open(cfg Config) (*Journal, error) {
	cfg, err := cfg.checked("open")
	if err != nil {
		return nil, err
	}
	j := &Journal{cfg: cfg}
	return j.opening(j.open())
}

func (j *Journal) open() (err error) {
	const op = "open"
	if j.files.fs, err = openFS(j.cfg, op, false); err != nil {
		return err
	}
	if err := j.files.openBoth(j.cfg, op, ReadWrite); err != nil {
		return err
	}
	s, err := scanAll(j.cfg, op, j.files.journal)
	if err != nil {
		return err
	}
	if _, err := s.drain(); err != nil {
		return err
	}
	j.header, j.head, j.size = s.header, s.head, s.end
	if !j.files.started {
		if err := j.finishCreation(op); err != nil {
			return err
		}
	}
	if err := j.settle(s.torn); err != nil {
		return wrap(op, j.cfg.path(suffixJournal), "it cannot be repaired and synced", err)
	}
	return j.inPlace(op)
}

// settle replaces torn bytes behind the last line by the note that they were there, and makes everything durable. The
// note comes first: a crash after it leaves bytes that the next Open notes once more, never a cut that nobody knows of.
func (j *Journal) settle(torn int64) error {
	f := j.files.journal
	if torn > 0 {
		line := cutLine(j.head.Seq+1, j.head.Hash, torn)
		if err := writeAt(f, line, j.size); err != nil {
			return err
		}
		j.head, j.size = headAt(j.head.Seq+1, line), j.size+int64(len(line))
		if err := f.Truncate(j.size); err != nil {
			return err
		}
	}
	// The process before us may have died between write and sync, and a rotation between rename and sync.
	return errors.Join(f.Sync(), j.files.fs.Sync())
}
