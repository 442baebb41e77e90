// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/evoseal/containment/internal/journal"
)

// fileStore keeps one run in one journal.
type fileStore struct {
	claimed atomic.Bool // one governor has it; only that one touches what is below
	dir     string
	runID   string
	journal *journal.Journal
	isNew   bool // the first record makes it
	buf     []byte

	openFS func(dir string) (journal.FS, error) // for tests; nil is the directory itself
}

// FileStore keeps runs in a directory, which it makes with mode 0700 if it is missing. It must be on a local file
// system, belong to the host, and be out of reach of what the loop runs. A run "r" is in r.journal: one JSON object a
// line, each with the hash of the line before; r.created says that it exists and carries the lock. Where there is no
// flock(2), Open fails with an error that matches errors.ErrUnsupported.
//
// Append costs one fdatasync if the record is durable. Every 8192 records the journal is replaced by a snapshot of what
// they say, which continues the chain of hashes.
func FileStore(dir string) (Store, error) {
	if dir == "" {
		return nil, fmt.Errorf("%w: FileStore: no directory is named", ErrInvalidOptions)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: FileStore: %q: %w", ErrInvalidOptions, dir, err)
	}
	return &fileStore{dir: abs}, nil
}

// Dir returns the directory.
func (s *fileStore) Dir() string { return s.dir }

func (s *fileStore) config() (journal.Config, error) {
	c := journal.Config{Dir: s.dir, Name: s.runID, Kind: "runaway", ID: s.runID}
	var err error
	if s.openFS != nil {
		c.FS, err = s.openFS(s.dir)
	}
	return c, err
}

// Load opens the journal and reads it.
func (s *fileStore) Load(ctx context.Context, runID string, apply func(*Record) error) error {
	if !s.claimed.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: run %q in %q", ErrStateLocked, runID, s.dir)
	}
	err := s.load(ctx, runID, apply)
	if err != nil && !errors.Is(err, ErrNoState) {
		s.claimed.Store(false)
	}
	return err
}

func (s *fileStore) load(ctx context.Context, runID string, apply func(*Record) error) error {
	s.runID, s.isNew = runID, false
	cfg, err := s.config()
	if err != nil {
		return err
	}
	j, err := journal.Open(cfg)
	if errors.Is(err, journal.ErrNotExist) {
		s.isNew = true
		return fmt.Errorf("%w: run %q in %q", ErrNoState, runID, s.dir)
	}
	if err != nil {
		return translate(err)
	}
	if err := s.read(ctx, j, apply); err != nil {
		return errors.Join(err, j.Close())
	}
	s.journal = j
	return nil
}

func (s *fileStore) read(ctx context.Context, j *journal.Journal, apply func(*Record) error) error {
	if snap := j.Header().Snapshot; snap != nil {
		if err := decode(snap, apply); err != nil {
			return err
		}
	}
	for rec, err := range j.Records() {
		switch {
		case err != nil:
			return translate(err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case rec.Cut > 0:
			err = apply(&Record{Op: OpTorn})
		default:
			err = decode(rec.Payload, apply)
		}
		if err != nil {
			return fmt.Errorf("%s, record %d: %w", filepath.Join(s.dir, s.runID+".journal"), rec.Seq, err)
		}
	}
	return nil
}

// decode reads a record. The journal has verified that it is what was written.
func decode(payload []byte, apply func(*Record) error) error {
	var r Record
	if err := json.Unmarshal(payload, &r); err != nil {
		return fmt.Errorf("%w: %w", ErrStateCorrupt, err)
	}
	return apply(&r)
}

// created is what the header of a journal says.
type created struct {
	Run string    `json:"run"`
	At  time.Time `json:"at"`
}

// Append makes the journal with the first record of a new run, and only then.
func (s *fileStore) Append(r *Record, durable bool) error {
	if s.isNew && s.journal == nil && s.claimed.Load() {
		if err := s.create(r.At); err != nil {
			return translate(err)
		}
	}
	if s.journal == nil {
		return ErrClosed
	}
	buf, err := r.AppendJSON(s.buf[:0])
	if err != nil {
		return err
	}
	s.buf = buf
	if _, err := s.journal.Append(buf, durable); err != nil {
		return translate(err)
	}
	return nil
}

func (s *fileStore) create(at time.Time) error {
	header, err := json.Marshal(created{s.runID, at})
	if err != nil {
		return err
	}
	cfg, err := s.config()
	if err != nil {
		return err
	}
	j, err := journal.Create(cfg, header)
	if err != nil {
		return err
	}
	s.journal, s.isNew = j, false
	return nil
}

// Snapshot begins the journal anew with one record. The numbers and the chain of hashes go on.
func (s *fileStore) Snapshot(r *Record) error {
	if s.journal == nil {
		return ErrClosed
	}
	snap, err := r.AppendJSON(nil)
	if err != nil {
		return err
	}
	return translate(s.journal.Rotate(s.journal.Head(), snap))
}

// Head returns the number and the hash of the last record.
func (s *fileStore) Head() string {
	if s.journal == nil {
		return ""
	}
	return s.journal.Head().String()
}

// Close gives the run back. The store can load it, or another run, again.
func (s *fileStore) Close() error {
	defer s.claimed.Store(false)
	if s.journal == nil {
		return nil
	}
	j := s.journal
	s.journal = nil
	return translate(j.Close())
}

// translate adds the sentinels of this package.
func translate(err error) error {
	for _, pair := range []struct{ from, to error }{
		{journal.ErrCorrupt, ErrStateCorrupt}, {journal.ErrLocked, ErrStateLocked}, {journal.ErrExist, ErrStateLocked},
		{journal.ErrUntrusted, ErrUntrusted},
	} {
		if errors.Is(err, pair.from) {
			return fmt.Errorf("%w: %w", pair.to, err)
		}
	}
	return err
}
