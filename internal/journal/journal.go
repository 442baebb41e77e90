// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"sync"
)

// Journal is an open journal. Its methods may be called at the same time. The zero value gives ErrClosed.
type Journal struct {
	mu     sync.Mutex
	cfg    Config
	files  files
	header Header
	head   Head
	size   int64  // where the next line begins
	dirty  bool   // something was written and not synced
	line   []byte // kept for the next Append
	state  error  // nil while it is usable, then an *Error for good
	opened bool
}

// Header returns what the file begins with. The slices must not be changed.
func (j *Journal) Header() Header {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.header
}

// Head returns the last record's number and hash.
func (j *Journal) Head() Head {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.head
}

// Size returns the size of the file in bytes, so that the caller can decide to Rotate.
func (j *Journal) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

// Append adds a record and returns its number. payload is one JSON object on one line, encoded; it is not kept. A record
// that is not durable survives the death of the process, one that is also that of the machine. ErrInvalid, ErrTooLarge
// and ErrFull leave the journal as it was; after any other error it is broken, and whether the record is in it is only
// known to the next Open.
func (j *Journal) Append(payload []byte, durable bool) (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return 0, err
	}
	if !isObject(payload) {
		return 0, j.refuse("append", ErrInvalid, "the payload is not one JSON object on one line", "correct the caller")
	}
	seq := j.head.Seq + 1
	j.line = dataLine(j.line[:0], seq, j.head.Hash, payload)
	if len(j.line) > MaxRecord {
		rule := fmt.Sprintf("the line would have %d bytes, and %d are allowed", len(j.line), MaxRecord)
		return 0, j.refuse("append", ErrTooLarge, rule, "say less in one record")
	}
	if j.size+int64(len(j.line)) > j.cfg.MaxSize {
		rule := fmt.Sprintf("it has %d bytes, the line %d, and %d are allowed", j.size, len(j.line), j.cfg.MaxSize)
		return 0, j.refuse("append", ErrFull, rule, "rotate it, or raise the maximum")
	}
	j.dirty = true
	if err := writeAt(j.files.journal, j.line, j.size); err != nil {
		return 0, j.fail("append", "the record could not be written", err)
	}
	j.size += int64(len(j.line))
	j.head = headAt(seq, j.line)
	if durable {
		if err := j.sync("append"); err != nil {
			return 0, err
		}
	}
	return seq, nil
}

// Sync makes all records durable. It does nothing if they are. After an error the journal is broken.
func (j *Journal) Sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	return j.sync("sync")
}

func (j *Journal) sync(op string) error {
	if !j.dirty {
		return nil
	}
	if err := j.files.journal.Sync(); err != nil {
		return j.fail(op, "it could not be synced", err)
	}
	j.dirty = false
	return j.inPlace(op)
}

// inPlace notices that somebody removed the journal or its lock, or wrote to it: what is appended then would be lost, or
// worse, counted beside another writer.
func (j *Journal) inPlace(op string) error {
	size, named, err := j.files.journal.Stat()
	if err != nil {
		return j.fail(op, "it cannot be examined", err)
	}
	_, locked, err := j.files.created.Stat()
	if err != nil {
		return j.fail(op, "its marker cannot be examined", err)
	}
	if !named || !locked || size != j.size {
		return j.fail(op, "somebody else removed or changed it, or its marker, while it was open", nil)
	}
	return nil
}

// Close syncs what is not yet durable, drops the lock and closes the file. Without an error everything is durable. Only the
// first call has an effect.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.opened || errors.Is(j.state, ErrClosed) {
		return nil
	}
	failed := j.state
	if failed == nil {
		failed = j.sync("close")
	}
	path := j.cfg.path(suffixJournal)
	failed = errors.Join(failed, wrap("close", path, "it cannot be closed", j.files.close()))
	j.state = &Error{Op: "use", Path: path, Rule: "it was closed", Kind: ErrClosed}
	return failed
}

// usable returns nil, or why the journal can no longer be used.
func (j *Journal) usable() error {
	if !j.opened {
		return &Error{Op: "use", Rule: "it was never opened", Fix: "Create or Open it", Kind: ErrClosed}
	}
	return j.state
}

// refuse is an error after which the journal is as it was.
func (j *Journal) refuse(op string, kind error, rule, fix string) error {
	return &Error{Op: op, Path: j.cfg.path(suffixJournal), Rule: rule, Fix: fix, Kind: kind}
}

// fail breaks the journal for good.
func (j *Journal) fail(op, rule string, cause error) error {
	j.state = &Error{
		Op: op, Path: j.cfg.path(suffixJournal), Rule: rule, Kind: ErrBroken, Err: cause,
		Fix: "mend the cause, then open it again; whether the last record is in it is not known before",
	}
	return j.state
}
