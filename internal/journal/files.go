// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"io/fs"
)

// marker is what Name.created holds once the journal is complete. Only its length counts.
const marker = "The journal beside this file was complete once. If it is missing now, it was removed.\n" +
	"Do not remove this file: the writer's lock is on it.\n"

// fixRestore is the way out where a file is missing.
const fixRestore = "restore the whole directory from a copy, or give up what it counted and begin under another name"

// files are the open files of one journal.
type files struct {
	fs      FS
	created File // its lock is the writer's
	journal File
	started bool // created is not empty: the journal was complete once
}

// openFS opens the directory.
func openFS(cfg Config, op string, create bool) (FS, error) {
	if cfg.FS != nil {
		return cfg.FS, nil
	}
	dir, err := OpenDir(cfg.Dir, create)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Op: op, Path: cfg.Dir, Rule: "there is no such directory", Kind: ErrNotExist, Fix: "Create makes it", Err: err}
	}
	return dir, wrap(op, cfg.Dir, "the directory cannot be opened", err)
}

// openMarker opens the marker and finds out whether the journal was complete once.
func (f *files) openMarker(cfg Config, op string, how OpenMode) (err error) {
	path := cfg.path(suffixCreated)
	if f.created, err = f.fs.Open(cfg.Name+suffixCreated, how); err != nil {
		return wrap(op, path, "the marker cannot be opened", err)
	}
	if how != ReadOnly {
		if err := f.created.Lock(); err != nil {
			return wrap(op, path, "the lock cannot be taken", err)
		}
	}
	size, _, err := f.created.Stat()
	f.started = size > 0
	return wrap(op, path, "the marker cannot be examined", err)
}

// openBoth opens marker and journal of a journal that exists.
func (f *files) openBoth(cfg Config, op string, how OpenMode) error {
	missing := f.openMarker(cfg, op, how)
	if missing != nil && !errors.Is(missing, fs.ErrNotExist) {
		return missing
	}
	var err error
	f.journal, err = f.fs.Open(cfg.Name+suffixJournal, how)
	gone := errors.Is(err, fs.ErrNotExist)
	// Without the system's error: what has vanished must never pass for what was not there.
	e := &Error{Op: op, Path: cfg.path(suffixJournal), Fix: fixRestore}
	switch {
	case err == nil && missing == nil:
		return nil
	case err == nil:
		e.Kind, e.Rule = ErrCorrupt, "its marker "+cfg.Name+suffixCreated+" is missing"
	case gone && missing == nil && f.started:
		e.Kind, e.Rule = ErrCorrupt, "it was complete once and is missing"
	case gone:
		e.Kind, e.Rule, e.Fix, e.Err = ErrNotExist, "there is none", "Create makes a new one", err
	default:
		return wrap(op, e.Path, "it cannot be opened", err)
	}
	return e
}

// begin writes the first line of a file, under the name that will replace the journal's, and makes it durable.
func (f *files) begin(cfg Config, line []byte) (File, error) {
	next, err := f.fs.Open(cfg.Name+suffixNew, CreateOrOpen)
	if err != nil {
		return nil, err
	}
	// A leftover of a crash may be there: it was never the journal.
	if err = next.Truncate(0); err == nil {
		if err = writeAt(next, line, 0); err == nil {
			err = next.Sync()
		}
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// close closes everything that is open, the lock last.
func (f *files) close() error {
	var all []error
	for _, one := range []File{f.journal, f.created} {
		if one != nil {
			all = append(all, one.Close())
		}
	}
	if f.fs != nil {
		all = append(all, f.fs.Close())
	}
	return errors.Join(all...)
}
