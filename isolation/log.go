// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evoseal/containment/internal/journal"
)

// Log is the decision log of one run: what was believed, seen, decided and proven, who allowed what, and how each step
// ended. It only grows, and each line carries the hash of the one before, so that an edit or a gap shows. What it
// recorded is not forgotten by a restart: the triggers that fired stay latched, and an override stays used.
//
// Its methods may be called at the same time. The zero value gives [ErrClosed].
type Log struct {
	mu     sync.Mutex
	j      *journal.Journal
	head   atomic.Pointer[string] // apart from the lock, which is held while a disk is slow and while something is logged
	runID  string
	state  logState
	logger *slog.Logger
}

// RecordKind says what a record of the decision log is about.
type RecordKind uint8

// The kinds of records.
const (
	RecordUnknown      RecordKind = iota
	RecordDecision                // what the rules asked for
	RecordObservation             // what was seen
	RecordVerification            // an attack on an executor and its report
	RecordOverride                // an override was used
	RecordApproval                // an approval was used
	RecordClear                   // a latch was ended
	RecordPhase                   // a step has reached a phase
	RecordVerdict                 // how a step ended
	RecordNote                    // anything else that a reader must know, such as a repair
)

var recordNames = []string{
	"unknown", "decision", "observation", "verification", "override", "approval", "clear", "phase", "verdict",
	"note",
}

// String returns the name, such as "decision".
func (k RecordKind) String() string { return named(k, recordNames) }

// MarshalText writes the name.
func (k RecordKind) MarshalText() ([]byte, error) {
	return []byte(recordNames[defined(k, recordNames)]), nil
}

// UnmarshalText reads a name; another text matches [ErrName].
func (k *RecordKind) UnmarshalText(text []byte) error {
	return parse(k, "kind of record", text, recordNames)
}

// Record is one entry of a decision log.
type Record struct {
	Seq  uint64          `json:"seq"` // from 1, without gaps
	At   time.Time       `json:"at"`
	Kind RecordKind      `json:"kind"`
	Body json.RawMessage `json:"body"` // as it was recorded
	Hash string          `json:"hash"` // hexadecimal SHA-256 of the line, which the next line carries
	// Cut > 0: so many bytes of an unfinished record were dropped here after a crash. Kind and Body are empty.
	Cut int64 `json:"cut,omitempty"`
}

// line is what is written.
type line struct {
	At   time.Time       `json:"at"`
	Kind RecordKind      `json:"kind"`
	Body json.RawMessage `json:"body"`
}

// Note adds a remark of the host, durably: the position of another journal, a maintenance window. At most 64 KiB with
// its frame. Nothing is decided by it; everything else in the log is written by this package alone, since a boundary
// believes it. Errors match [ErrLog], or [ErrClosed].
func (l *Log) Note(text string) error {
	_, err := l.record(RecordNote, text, true)
	return err
}

// record adds a record. body is encoded as JSON, and must fit into 64 KiB with its frame. With durable it is on the
// disk when it returns, and everything before it; without, it survives the death of the process only.
func (l *Log) record(kind RecordKind, body any, durable bool) (Record, error) {
	if l == nil {
		return Record{}, ErrClosed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(kind, body, durable)
}

func (l *Log) append(kind RecordKind, body any, durable bool) (Record, error) {
	if l.j == nil {
		return Record{}, ErrClosed
	}
	if defined(kind, recordNames) == RecordUnknown {
		return Record{}, fmt.Errorf("%w: %v is no kind of record", ErrLog, kind)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %v: %w", ErrLog, kind, err)
	}
	rec := Record{At: time.Now().UTC(), Kind: kind, Body: text}
	next := l.state
	if err := next.add(rec); err != nil {
		return Record{}, err
	}
	payload, err := json.Marshal(line{rec.At, kind, text})
	if err != nil {
		return Record{}, fmt.Errorf("%w: %v: %w", ErrLog, kind, err)
	}
	if rec.Seq, err = l.j.Append(payload, durable); err != nil {
		return Record{}, logError(err)
	}
	l.state = next
	l.setHead()
	l.say(slog.LevelDebug, "isolation: recorded", "seq", rec.Seq, "kind", kind.String())
	return rec, nil
}

// Records goes through all records that exist at the call and verifies them again. An error ends it; then what was read
// is not the whole log.
func (l *Log) Records() iter.Seq2[Record, error] {
	l.mu.Lock()
	j := l.j
	l.mu.Unlock()
	if j == nil {
		return func(yield func(Record, error) bool) { yield(Record{}, ErrClosed) }
	}
	return records(j.Records())
}

// Head identifies the state of the log: the number of the last record and its hash. Kept elsewhere, it shows whether an
// older copy was put back. It is "" of a log that is not open. It waits for nothing, so a log handler may ask for it.
func (l *Log) Head() string {
	if head := l.head.Load(); head != nil {
		return *head
	}
	return ""
}

func (l *Log) setHead() {
	head := l.j.Head().String()
	l.head.Store(&head)
}

// Close makes everything durable and lets another process open the log. A second call is [ErrClosed].
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.j == nil {
		return ErrClosed
	}
	err := l.j.Close()
	l.j = nil
	l.head.Store(nil)
	return logError(err)
}

// say logs an event. A handler that panics must not end what is being recorded.
func (l *Log) say(level slog.Level, msg string, args ...any) {
	if l.logger.Enabled(context.Background(), level) {
		_ = guarded(func() { l.logger.Log(context.Background(), level, msg, append([]any{"run", l.runID}, args...)...) })
	}
}

// logError makes an error of the journal one of this package.
func logError(err error) error {
	if err == nil || errors.Is(err, ErrLog) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrLog, err)
}
