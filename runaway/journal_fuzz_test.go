// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/runaway"
)

// sample writes a run with everything in it and returns its files and its counts.
func sample(t testing.TB, dir string) (journal, created []byte, st runaway.Status) {
	t.Helper()
	s, err := runaway.FileStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	g, err := runaway.Open(t.Context(), runID, runaway.Limits{Budget: runaway.Usage{Tokens: 100}}, s, metered)
	if err != nil {
		t.Fatal(err)
	}
	for n, o := range []runaway.Outcome{rejected, fresh(1), rejected, neutral, rejected} {
		it := beginWith(t, g, runaway.Estimate{Tokens: 5})
		_, err := it.Seen(print(n))
		if err := errors.Join(err, it.Spend(runaway.Usage{Tokens: 4}), it.End(o)); err != nil {
			t.Fatal(err)
		}
	}
	st = g.Status()
	shut(t, g)
	journal, err = os.ReadFile(filepath.Join(dir, runID+".journal"))
	if err != nil {
		t.Fatal(err)
	}
	if created, err = os.ReadFile(filepath.Join(dir, runID+".created")); err != nil {
		t.Fatal(err)
	}
	return journal, created, st
}

// damaged opens a run whose journal was changed.
func damaged(t testing.TB, journal, created []byte) (runaway.Status, error) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string][]byte{".journal": journal, ".created": created} {
		if err := os.WriteFile(filepath.Join(dir, runID+name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := runaway.FileStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	g, err := runaway.Open(t.Context(), runID, runaway.Limits{Budget: runaway.Usage{Tokens: 100}}, s, metered)
	if err != nil {
		return runaway.Status{}, err
	}
	st := g.Status()
	shut(t, g)
	return st, nil
}

// FuzzJournalByte changes one byte of a journal. It is found, or it lies in what was never finished: then the counts
// are at least those of the records before it.
func FuzzJournalByte(f *testing.F) {
	journal, created, want := sample(f, f.TempDir())
	for at := 0; at < len(journal); at += 97 {
		f.Add(at, byte(1))
	}
	f.Add(len(journal)-1, byte(0xff))
	f.Fuzz(func(t *testing.T, at int, flip byte) {
		if at < 0 || at >= len(journal) || flip == 0 {
			return
		}
		changed := append([]byte{}, journal...)
		changed[at] ^= flip
		st, err := damaged(t, changed, created)
		if err == nil && (st.Attempts < want.Attempts || st.Spent.Tokens < want.Spent.Tokens ||
			st.Streak < want.Streak) {
			t.Errorf("byte %d changed by %#x: %+v, before %+v", at, flip, st, want)
		} else if err != nil && !errors.Is(err, runaway.ErrStateCorrupt) {
			t.Errorf("byte %d changed by %#x: %v", at, flip, err)
		}
	})
}

// FuzzJournalCut cuts a journal anywhere, as a crash does. What is left counts, and half a record counts as an
// iteration.
func FuzzJournalCut(f *testing.F) {
	journal, created, _ := sample(f, f.TempDir())
	for at := 0; at <= len(journal); at += 131 {
		f.Add(at)
	}
	f.Fuzz(func(t *testing.T, at int) {
		if at < 0 || at > len(journal) {
			return
		}
		begins, lines, torn := 0, 0, false
		for rest := journal[:at]; len(rest) > 0; {
			end := bytes.IndexByte(rest, '\n')
			if torn = end < 0; torn {
				break
			}
			if lines++; bytes.Contains(rest[:end], []byte(`"op":"begin"`)) {
				begins++
			}
			rest = rest[end+1:]
		}
		st, err := damaged(t, journal[:at], created)
		switch {
		case err != nil && !errors.Is(err, runaway.ErrStateCorrupt):
			t.Errorf("cut at %d: %v", at, err)
		case err == nil && st.Attempts < begins+btoi(torn && lines > 1):
			t.Errorf("cut at %d: %d begins and torn %v, found %+v", at, begins, torn, st)
		case err != nil && lines > 0 && !torn:
			t.Errorf("cut at %d, at the end of a line: %v", at, err)
		}
	})
}

// TestVanished: a journal that is gone is damage, and not a new run.
func TestVanished(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sample(t, dir)
	if err := os.Remove(filepath.Join(dir, runID+".journal")); err != nil {
		t.Fatal(err)
	}
	s, err := runaway.FileStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := runaway.Open(t.Context(), runID, runaway.Limits{}, s, nil); !errors.Is(err,
			runaway.ErrStateCorrupt) {
			t.Errorf("%v", err)
		}
	}
}
