// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/evoseal/containment/internal/journal"
)

// LogOptions says what OpenLog must find. Nil is the zero value.
type LogOptions struct {
	// MustExist refuses to begin a log: the run is known to have one, so that a missing one is not a new one.
	MustExist bool
	Logger    *slog.Logger // nil: none
}

// logHeader is the first line of a log.
type logHeader struct {
	Policy string `json:"policy"` // of the library that began it; each decision carries its own
}

// journalOf names the file of a run. It has a name of its own so that a governor may keep its journal beside it.
func journalOf(dir, runID string) (journal.Config, error) {
	if len(runID) > 128 {
		return journal.Config{}, fmt.Errorf("%w: the run id has %d bytes; at most 128", ErrLog, len(runID))
	}
	return journal.Config{Dir: dir, Name: "isolation-" + runID, Kind: "isolation", ID: runID}, nil
}

// OpenLog opens the decision log of a run, or begins one. The directory must belong to the caller, and nobody else may
// write it. The file is isolation-RUN.journal; `jq -c .data` shows it. One process has it open at a time. Errors match
// [ErrLog].
func OpenLog(dir, runID string, o *LogOptions) (*Log, error) {
	if o == nil {
		o = &LogOptions{}
	}
	cfg, err := journalOf(dir, runID)
	if err != nil {
		return nil, err
	}
	j, err := journal.Open(cfg)
	if errors.Is(err, journal.ErrNotExist) && !o.MustExist {
		var header []byte
		if header, err = json.Marshal(logHeader{PolicyVersion}); err == nil {
			j, err = journal.Create(cfg, header)
		}
	}
	if err != nil {
		return nil, logError(err)
	}
	l := &Log{j: j, runID: runID, logger: o.Logger}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	l.setHead()
	for rec, err := range l.Records() {
		if err == nil {
			err = l.state.add(rec)
		}
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// ReadLog goes through a decision log without opening it, also while another process writes it. Each record is verified
// before it is given; damage ends the iteration with an error that matches [ErrLog].
func ReadLog(dir, runID string) iter.Seq2[Record, error] {
	cfg, err := journalOf(dir, runID)
	if err != nil {
		return func(yield func(Record, error) bool) { yield(Record{}, err) }
	}
	return records(journal.Read(cfg))
}

// LogReport is what VerifyLog found.
type LogReport struct {
	RunID   string `json:"runID"`
	Records int    `json:"records"`
	Head    string `json:"head"` // to be compared with one that was kept elsewhere
	// Torn: an unfinished record of Dropped bytes follows. OpenLog would note and drop it; a writer at work looks the
	// same.
	Torn    bool  `json:"torn"`
	Dropped int64 `json:"dropped"`
}

// VerifyLog checks every line of a decision log without opening it, and that every record can be understood. It changes
// nothing. Errors match [ErrLog].
func VerifyLog(dir, runID string) (LogReport, error) {
	cfg, err := journalOf(dir, runID)
	if err != nil {
		return LogReport{}, err
	}
	r, err := journal.Verify(cfg)
	if err != nil {
		return LogReport{}, logError(err)
	}
	var state logState
	for rec, err := range records(journal.Read(cfg)) {
		if err == nil {
			err = state.add(rec)
		}
		if err != nil {
			return LogReport{}, err
		}
	}
	return LogReport{RunID: r.Header.ID, Records: r.Records, Head: r.Head.String(), Torn: r.Torn, Dropped: r.Dropped}, nil
}

// records decodes what a journal yields. The first error is the last pair.
func records(from iter.Seq2[journal.Record, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for r, err := range from {
			rec, err := decodeRecord(r, err)
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

func decodeRecord(r journal.Record, err error) (Record, error) {
	if err != nil {
		return Record{}, logError(err)
	}
	rec := Record{Seq: r.Seq, Hash: fmt.Sprintf("%x", r.Hash), Cut: r.Cut}
	if r.Cut > 0 {
		return rec, nil
	}
	var l line
	if err := json.Unmarshal(r.Payload, &l); err != nil {
		return Record{}, fmt.Errorf("%w: record %d: %w", ErrLog, r.Seq, err)
	}
	if l.Kind == RecordUnknown {
		return Record{}, fmt.Errorf("%w: record %d has no kind", ErrLog, r.Seq)
	}
	rec.At, rec.Kind, rec.Body = l.At, l.Kind, l.Body // Unmarshal has copied it
	return rec, nil
}
