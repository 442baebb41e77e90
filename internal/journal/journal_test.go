// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/journal"
)

const name = "run-7"

func config(dir string) journal.Config {
	return journal.Config{Dir: dir, Name: name, Kind: "test", ID: "run/7 \"é\""}
}

// state is a directory of its own that Create makes.
func state(t testing.TB) journal.Config { return config(filepath.Join(t.TempDir(), "state")) }

func create(t testing.TB, cfg journal.Config) *journal.Journal {
	t.Helper()
	header := []byte(`{"limits":3}`)
	j, err := journal.Create(cfg, header)
	if err != nil {
		t.Fatal(err)
	}
	clear(header) // it belongs to the caller, who may use it again
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func open(t testing.TB, cfg journal.Config) *journal.Journal {
	t.Helper()
	j, err := journal.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func payload(i int) []byte { return fmt.Appendf(nil, `{"i":%d}`, i) }

func fill(t testing.TB, j *journal.Journal, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if _, err := j.Append(payload(i), i%3 == 0); err != nil {
			t.Fatal(err)
		}
	}
}

func closeIt(t testing.TB, j *journal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// texts are the records in short: payloads, and cuts as "cut N".
func texts(t testing.TB, j *journal.Journal) []string {
	t.Helper()
	var all []string
	next := j.Header().Seq + 1
	for rec, err := range j.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Seq != next {
			t.Fatalf("record %d follows record %d", rec.Seq, next-1)
		}
		next++
		if text := string(rec.Payload); rec.Cut == 0 {
			all = append(all, text)
		} else {
			all = append(all, fmt.Sprintf("cut %d", rec.Cut))
		}
	}
	return all
}

func wantTexts(t testing.TB, j *journal.Journal, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, texts(t, j)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// wantError demands an *Error with this sentinel.
func wantError(t testing.TB, err, want error) {
	t.Helper()
	var typed *journal.Error
	if !errors.Is(err, want) || !errors.As(err, &typed) {
		t.Fatalf("got %v, want an *Error that matches %q", err, want)
	}
	if typed.Rule == "" || !errors.Is(typed.Kind, want) {
		t.Errorf("%#v is not about %q", typed, want)
	}
}

func TestCreateAppendReopen(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	j := create(t, cfg)
	wantTexts(t, j)
	fill(t, j, 0, 5)
	seq, err := j.Append([]byte(`{"text":"\n\u0000 é"}`), true)
	if seq != 6 || err != nil {
		t.Fatalf("record %d, %v; want 6", seq, err)
	}
	head, size := j.Head(), j.Size()
	closeIt(t, j)

	again := open(t, cfg)
	if again.Head() != head || again.Size() != size || head.Seq != 6 {
		t.Errorf("reopened at %v, %d bytes; want %v, %d", again.Head(), again.Size(), head, size)
	}
	wantTexts(t, again, `{"i":0}`, `{"i":1}`, `{"i":2}`, `{"i":3}`, `{"i":4}`, `{"text":"\n\u0000 é"}`)
	want := journal.Header{Kind: "test", ID: cfg.ID, Payload: []byte(`{"limits":3}`)}
	if diff := cmp.Diff(want, again.Header()); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	fill(t, again, 5, 6)
	wantReport(t, cfg, journal.Report{Header: want, Head: again.Head(), Records: 7, Size: again.Size()})
}

func wantReport(t testing.TB, cfg journal.Config, want journal.Report) {
	t.Helper()
	got, err := journal.Verify(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// What doc.go promises to a person with an editor, jq and sha256sum.
func TestReadableByAPerson(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	fill(t, create(t, cfg), 0, 4)
	data, err := os.ReadFile(filepath.Join(cfg.Dir, name+".journal"))
	if err != nil {
		t.Fatal(err)
	}
	prev := strings.Repeat("0", 64)
	lines := bytes.SplitAfter(data, []byte("\n"))
	if len(lines) != 6 || len(lines[5]) != 0 {
		t.Fatalf("got %d lines, want a header, 4 records and nothing after the last line end", len(lines))
	}
	for i, line := range lines[:5] {
		var fields struct {
			N      int
			Prev   string
			Header *struct{ ID string }
			Data   *struct{ I int }
		}
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if fields.N != i || fields.Prev != prev || (fields.Header != nil) != (i == 0) || (fields.Data != nil) != (i > 0) {
			t.Errorf("line %d: %s; want number %d after %s", i+1, line, i, prev)
		}
		sum := sha256.Sum256(line)
		prev = hex.EncodeToString(sum[:])
	}
}

func TestExplicit(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	_, err := journal.Open(cfg)
	wantError(t, err, journal.ErrNotExist)
	_, err = journal.Verify(cfg)
	wantError(t, err, journal.ErrNotExist)
	closeIt(t, create(t, cfg))
	_, err = journal.Create(cfg, []byte(`{}`))
	wantError(t, err, journal.ErrExist)
	other := cfg
	other.Name = "run-8"
	_, err = journal.Open(other)
	wantError(t, err, journal.ErrNotExist)
	for _, wrong := range []journal.Config{{Kind: "other", ID: cfg.ID}, {Kind: cfg.Kind, ID: "other"}} {
		wrong.Dir, wrong.Name = cfg.Dir, cfg.Name
		_, err = journal.Open(wrong)
		wantError(t, err, journal.ErrCorrupt)
	}
}

// A journal that has vanished is not a new one, nor is one whose lock file has.
func TestVanished(t *testing.T) {
	t.Parallel()
	for _, gone := range []string{".journal", ".created"} {
		cfg := state(t)
		closeIt(t, create(t, cfg))
		if err := os.Remove(filepath.Join(cfg.Dir, name+gone)); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first attempt must not make the second succeed
			_, err := journal.Open(cfg)
			wantError(t, err, journal.ErrCorrupt)
			if errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it can be taken for one that was not there: %v", err)
			}
			_, err = journal.Verify(cfg)
			wantError(t, err, journal.ErrCorrupt)
			_, err = journal.Create(cfg, []byte(`{}`))
			wantError(t, err, map[string]error{".journal": journal.ErrCorrupt, ".created": journal.ErrExist}[gone])
		}
	}
}
