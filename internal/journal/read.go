// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io"
	"iter"
)

// scanAll begins to read the whole file.
func scanAll(cfg Config, op string, f File) (*scanner, error) {
	path := cfg.path(suffixJournal)
	size, _, err := f.Stat()
	if err != nil {
		return nil, wrap(op, path, "it cannot be examined", err)
	}
	// The note of a cut may pass the maximum by less than one record.
	if size > cfg.MaxSize+MaxRecord {
		rule := fmt.Sprintf("it has %d bytes, and %d are allowed", size, cfg.MaxSize)
		return nil, &Error{Op: op, Path: path, Rule: rule, Fix: "raise the maximum", Kind: ErrFull}
	}
	return newScanner(cfg, op, f, size)
}

// openToRead opens the files without the lock; the caller must close them also after an error.
func openToRead(cfg Config) (f files, s *scanner, err error) {
	const op = "read"
	if cfg, err = cfg.checked(op); err != nil {
		return f, nil, err
	}
	if f.fs, err = openFS(cfg, op, false); err != nil {
		return f, nil, err
	}
	if err = f.openBoth(cfg, op, ReadOnly); err != nil {
		return f, nil, err
	}
	s, err = scanAll(cfg, op, f.journal)
	return f, s, err
}

// Verify reads a journal without the lock and changes nothing. The errors are those of Open.
func Verify(cfg Config) (Report, error) {
	f, s, err := openToRead(cfg)
	if err != nil {
		return Report{}, errors.Join(err, f.close())
	}
	n, err := s.drain()
	if err = errors.Join(err, f.close()); err != nil {
		return Report{}, err
	}
	return Report{Header: s.header, Head: s.head, Records: n, Size: s.end, Torn: s.torn > 0, Dropped: s.torn}, nil
}

// Read iterates over a journal without the lock, for inspection. Each record is verified before it is given; damage ends
// the iteration with an error, an unfinished last record without one. Verify knows the difference.
func Read(cfg Config) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f, s, err := openToRead(cfg)
		defer func() { _ = f.close() }() // they were only read
		for err == nil {
			var rec Record
			if rec, err = s.next(); err == nil && !yield(rec, nil) {
				return
			}
		}
		if err != io.EOF {
			yield(Record{}, err)
		}
	}
}

// Records iterates over the records that exist at the call, header not included, and verifies them again. No lock is held
// while the loop body runs, so it may append; Rotate and Close end the iteration with ErrMoved or ErrClosed.
func (j *Journal) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		j.mu.Lock()
		err := j.usable()
		cfg, file, size, want := j.cfg, j.files.journal, j.size, j.head
		j.mu.Unlock()
		var s *scanner
		if err == nil {
			s, err = newScanner(cfg, "read", file, size)
		}
		for err == nil {
			var rec Record
			if rec, err = s.next(); err == nil && !yield(rec, nil) {
				return
			}
		}
		switch {
		case err != io.EOF:
			yield(Record{}, j.explain(err, file))
		case s.head != want:
			yield(Record{}, s.corrupt("it does not lead to the head that was verified before"))
		}
	}
}

// explain says why a file could not be read to its end, if that is because it is not the journal's any more.
func (j *Journal) explain(err error, file File) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case errors.Is(j.state, ErrClosed):
		return j.state
	case j.opened && j.files.journal != file:
		return j.refuse("read", ErrMoved, "it was rotated while it was read", "read it again")
	}
	return err
}
