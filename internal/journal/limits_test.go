// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/journal"
)

// longest is the largest payload that fits into the line of the next record.
func longest(j *journal.Journal) []byte {
	frame := len(fmt.Sprintf(`{"n":%d,"prev":"%064d","data":,"crc":"01234567"}`, j.Head().Seq+1, 0)) + 1
	return object(journal.MaxRecord - frame)
}

// object is a JSON object of n bytes.
func object(n int) []byte { return []byte(`{"x":"` + strings.Repeat("x", n-8) + `"}`) }

func TestLargestRecord(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	j := create(t, cfg)
	head, size := j.Head(), j.Size()
	_, err := j.Append(object(len(longest(j))+1), false)
	wantError(t, err, journal.ErrTooLarge)
	if j.Head() != head || j.Size() != size {
		t.Error("a record that was refused left something behind")
	}
	want := longest(j)
	if _, err := j.Append(want, true); err != nil {
		t.Fatal(err)
	}
	if got := j.Size() - size; got != journal.MaxRecord {
		t.Errorf("the line has %d bytes, want %d", got, journal.MaxRecord)
	}
	closeIt(t, j)
	wantTexts(t, open(t, cfg), string(want))
}

func TestLargestFile(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	cfg.MaxSize = journal.MaxRecord
	j := create(t, cfg)
	_, err := j.Append(longest(j), false) // beside the header
	wantError(t, err, journal.ErrFull)
	n := 0
	for ; err == nil || n == 0; n++ {
		_, err = j.Append(object(1000), false)
	}
	wantError(t, err, journal.ErrFull)
	if j.Size() > cfg.MaxSize || j.Size() < cfg.MaxSize-2000 {
		t.Errorf("full at %d bytes, want almost %d", j.Size(), cfg.MaxSize)
	}
	// It is not broken: what fits still goes in, and a rotation makes room.
	fill(t, j, 0, 1)
	wantError(t, j.Rotate(j.Head(), object(journal.MaxRecord)), journal.ErrTooLarge)
	if err := j.Rotate(j.Head(), fmt.Appendf(nil, `{"count":%d}`, n)); err != nil {
		t.Fatal(err)
	}
	fill(t, j, 1, 100)
	closeIt(t, j)

	grown := open(t, state2(cfg, 1<<20))
	fill(t, grown, 0, 2000)
	closeIt(t, grown)
	_, err = journal.Open(cfg)
	wantError(t, err, journal.ErrFull)
	_, err = journal.Verify(cfg)
	wantError(t, err, journal.ErrFull)
	open(t, state2(cfg, 0))
}

func state2(cfg journal.Config, size int64) journal.Config {
	cfg.MaxSize = size
	return cfg
}

// The header may be far longer than a record, since it carries a snapshot.
func TestLargestSnapshot(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	j := create(t, cfg)
	fill(t, j, 0, 3)
	wantError(t, j.Rotate(j.Head(), object(journal.MaxHeader)), journal.ErrTooLarge)
	snapshot := object(journal.MaxHeader - 300)
	if err := j.Rotate(j.Head(), snapshot); err != nil {
		t.Fatal(err)
	}
	fill(t, j, 3, 4)
	closeIt(t, j)
	j = open(t, cfg)
	if !bytes.Equal(j.Header().Snapshot, snapshot) {
		t.Error("the snapshot is not what was given")
	}
	wantTexts(t, j, `{"i":3}`)
}

func TestRotate(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	j := create(t, cfg)
	before := j.Head()
	fill(t, j, 0, 3)
	wantError(t, j.Rotate(before, []byte(`{"count":0}`)), journal.ErrMoved)
	for round := range 3 {
		last := j.Head()
		snapshot := fmt.Appendf(nil, `{"round":%d}`, round)
		if err := j.Rotate(j.Head(), snapshot); err != nil {
			t.Fatal(err)
		}
		snapshot[0] = 'x' // the caller may use it again
		want := journal.Header{
			Seq: last.Seq + 1, Kind: cfg.Kind, ID: cfg.ID, Payload: []byte(`{"limits":3}`),
			Snapshot: fmt.Appendf(nil, `{"round":%d}`, round),
		}
		if diff := cmp.Diff(want, j.Header()); diff != "" {
			t.Errorf("header (-want +got):\n%s", diff)
		}
		wantReport(t, cfg, journal.Report{Header: want, Head: j.Head(), Size: j.Size()})
		data, err := journal.FileBytes(j)
		if err != nil {
			t.Fatal(err)
		}
		if prefix := fmt.Sprintf(`{"n":%d,"prev":"%x","header"`, last.Seq+1, last.Hash); !strings.HasPrefix(string(data), prefix) {
			t.Errorf("the new file begins with %.100s, want %s", data, prefix)
		}
		fill(t, j, 3, 5)
		wantTexts(t, j, `{"i":3}`, `{"i":4}`)
		closeIt(t, j)
		j = open(t, cfg)
		wantTexts(t, j, `{"i":3}`, `{"i":4}`)
	}
}

// Who reads while the file is replaced is told so, and who reads without the lock sees one file or the other.
func TestReadDuringRotate(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	j := create(t, cfg)
	fill(t, j, 0, 1000) // more than one buffer
	var last error
	for rec, err := range j.Records() {
		if last = err; err == nil && rec.Seq == 10 {
			fill(t, j, 0, 1)
			if err := j.Rotate(j.Head(), []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantError(t, last, journal.ErrMoved)

	var readers sync.WaitGroup
	stop := make(chan struct{})
	readers.Go(func() {
		for done := false; !done; {
			select {
			case <-stop:
				done = true
			default:
			}
			if _, err := journal.Verify(cfg); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 200 {
		fill(t, j, i, i+1)
		if err := j.Rotate(j.Head(), []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	readers.Wait()
}

func TestRead(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	j := create(t, cfg)
	fill(t, j, 0, 5)
	n := 0
	for rec, err := range journal.Read(cfg) { // the writer has it open
		if err != nil || string(rec.Payload) != string(payload(n)) {
			t.Fatalf("record %d: %s, %v", n, rec.Payload, err)
		}
		if n++; n == 3 {
			break
		}
	}
	m := holding(append(sample(t, false), "unfinished"...))
	n = 0
	for _, err := range journal.Read(memConfig(m)) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 7 {
		t.Errorf("%d records, want 7 and no word about what is unfinished", n)
	}
	n = 0
	var last error
	for _, err := range journal.Read(memConfig(holding(append(sample(t, false), "damaged\n"...)))) {
		if last = err; err == nil {
			n++
		}
	}
	wantError(t, last, journal.ErrCorrupt)
	var typed *journal.Error
	if errors.As(last, &typed); n != 7 || typed.Line != 9 {
		t.Errorf("%d records, then %v; want 7 and line 9", n, last)
	}
	for _, err := range journal.Read(state(t)) {
		wantError(t, err, journal.ErrNotExist)
	}
}

func TestConcurrentAppend(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	j := create(t, cfg)
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := range 20 {
				if _, err := j.Append(payload(w*100+i), i == 10); err != nil {
					t.Error(err)
				}
				_ = j.Head()
			}
		})
	}
	writers.Wait()
	if got := texts(t, j); len(got) != 160 || j.Head().Seq != 160 {
		t.Errorf("%d records, head %v; want 160", len(got), j.Head())
	}
}
