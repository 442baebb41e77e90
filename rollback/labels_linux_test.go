// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := fakeStore(t, dir, nil)
	ctx, c := t.Context(), fakeCheckpoint(t, s, fakeDir{})
	pinned := func(want string) {
		t.Helper()
		for _, s := range []*Store{s, fakeStore(t, dir, nil)} {
			if got, err := s.Get(ctx, c.ID); err != nil || got.Pinned != want {
				t.Errorf("pinned %q, want %q, %v", got.Pinned, want, err)
			}
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	do(s.Unpin(ctx, c.ID)) // it is not pinned
	do(s.Pin(ctx, c.ID, "accepted"))
	do(s.Pin(ctx, c.ID, "accepted"))
	pinned("accepted")
	do(s.Pin(ctx, c.ID, "better\nreason"))
	pinned("better\nreason")
	if err := s.Delete(ctx, c.ID); !errors.Is(err, ErrPinned) {
		t.Error(err)
	}
	do(s.Unpin(ctx, c.ID))
	do(s.Unpin(ctx, c.ID))
	pinned("")
	list, _, _, err := s.labels()
	if err != nil || len(list) != 3 {
		t.Errorf("%d records, want 3: what changes nothing is not written; %v", len(list), err)
	}
	do(s.Delete(ctx, c.ID))
	for _, err := range []error{s.Pin(ctx, c.ID, "x"), s.Unpin(ctx, c.ID), s.Delete(ctx, c.ID)} {
		if !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
	for _, why := range []string{"", "\xff", strings.Repeat("x", maxMetaBytes+1)} {
		if err := s.Pin(ctx, c.ID, why); !errors.Is(err, fs.ErrInvalid) {
			t.Error(err)
		}
	}
}

func TestPinsTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := fakeStore(t, dir, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		c := fakeCheckpoint(t, s, fakeDir{"f": string(rune('a' + i))})
		other := fakeStore(t, dir, nil)
		wg.Go(func() {
			if err := other.Pin(t.Context(), c.ID, "x"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if st, err := s.Stats(t.Context()); err != nil || st.Pinned != 8 {
		t.Errorf("%+v, %v", st, err)
	}
}

func sampleLabels(t testing.TB, chain uint32) (list []label, data []byte, ends []int) {
	t.Helper()
	now := time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)
	list = []label{
		{Op: labelPin, ID: ID{1}, Why: "one\n<>", Time: now},
		{Op: labelRestore, ID: ID{2}, Safety: ID{3}, Tree: fakeKey, Time: now},
		{Op: labelUnpin, ID: ID{1}, Time: now},
	}
	for _, l := range list {
		record, next, err := encodeLabel(chain, l)
		if err != nil {
			t.Fatal(err)
		}
		data, chain = append(data, record...), next
		ends = append(ends, len(data))
	}
	return list, data, ends
}

func TestLabelsRoundTrip(t *testing.T) {
	t.Parallel()
	want, data, _ := sampleLabels(t, 5)
	got, whole, _, err := decodeLabels(5, data)
	if err != nil || whole != len(data) {
		t.Fatal(whole, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, _, _, err := decodeLabels(6, data); err == nil {
		t.Error("a log of another store is accepted")
	}
}

// TestLabelsChanged: every bit counts; a record that is missing, doubled or moved is noticed.
func TestLabelsChanged(t *testing.T) {
	t.Parallel()
	_, data, ends := sampleLabels(t, 5)
	for i := range 8 * len(data) {
		bad := bytes.Clone(data)
		bad[i/8] ^= 1 << (i % 8)
		if _, _, _, err := decodeLabels(5, bad); err == nil {
			t.Errorf("bit %d of byte %d: accepted", i%8, i/8)
		}
	}
	a, b, c := data[:ends[0]], data[ends[0]:ends[1]], data[ends[1]:]
	for name, parts := range map[string][][]byte{
		"first missing": {b, c}, "middle missing": {a, c}, "doubled": {a, a, b, c}, "swapped": {b, a, c}, "text after": {a, b, c, []byte(strings.Repeat("x", 40))},
		"zeros between": {a, make([]byte, 40), b, c},
	} {
		if _, _, _, err := decodeLabels(5, bytes.Join(parts, nil)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestLabelsTorn: what a crash leaves of the last record does not count, and the next one takes its place.
func TestLabelsTorn(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, place(t, SyncProcess), &Options{Sync: SyncProcess})
	_, data, ends := sampleLabels(t, s.chain())
	file := filepath.Join(s.path, labelsFile)
	for n := range data {
		records := 0
		for records < len(ends) && ends[records] <= n {
			records++
		}
		for _, tail := range [][]byte{nil, make([]byte, 50)} {
			if len(tail) > 0 && n != ends[max(records, 1)-1] {
				continue // zeros in the middle of a record are damage
			}
			if err := os.WriteFile(file, append(bytes.Clone(data[:n]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			list, _, _, err := s.labels()
			if err != nil || len(list) != records {
				t.Errorf("%d of %d bytes: %d records, %v", n, len(data), len(list), err)
			}
			if err := s.addLabel(t.Context(), label{Op: labelPin, ID: ID{9}}); err != nil {
				t.Errorf("%d bytes: %v", n, err)
			}
			if list, _, _, err = s.labels(); err != nil || len(list) != records+1 || list[records].ID != (ID{9}) {
				t.Errorf("%d bytes: after the next one %d records, %v", n, len(list), err)
			}
		}
	}
}

// TestDamagedLabels: they stop what would delete, and Verify names them; checkpoints are listed all the same.
func TestDamagedLabels(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	ctx := t.Context()
	c := fakeCheckpoint(t, s, fakeDir{})
	if err := s.Pin(ctx, c.ID, "x"); err != nil {
		t.Fatal(err)
	}
	flipBit(t, filepath.Join(s.path, labelsFile), 8*30)
	_, prune := s.Prune(ctx, Retention{})
	for i, err := range []error{prune, s.Delete(ctx, c.ID), s.Pin(ctx, c.ID, "y"), s.Verify(ctx, ID{})} {
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || corrupt.Object != labelsFile {
			t.Errorf("call %d: %v", i, err)
		}
	}
	listed, failed := 0, 0
	for got, err := range s.All(ctx) {
		if err != nil {
			failed++
		} else if got.ID == c.ID {
			listed++
		}
	}
	if listed != 1 || failed != 1 {
		t.Errorf("%d listed, %d errors", listed, failed)
	}
}

func FuzzDecodeLabels(f *testing.F) {
	_, data, ends := sampleLabels(f, 5)
	f.Add(data)
	f.Add(data[:ends[1]+40])
	f.Add(make([]byte, 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, whole, _, err := decodeLabels(5, data)
		if err != nil {
			return
		}
		var again []byte
		chain := uint32(5)
		for _, l := range list {
			record, next, err := encodeLabel(chain, l)
			if err != nil {
				t.Fatal(err)
			}
			again, chain = append(again, record...), next
		}
		if !bytes.Equal(again, data[:whole]) {
			t.Errorf("%q is accepted and not canonical", data)
		}
	})
}
