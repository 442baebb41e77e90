// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/lease"
)

// What cannot be read is reported and kept; what never became a lease goes without a word; what is not ours is left
// alone; and none of it keeps the sweep from going on.
func TestSweepOddFiles(t *testing.T) {
	t.Parallel()
	put := func(content string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(content), 0o600) }
	}
	id := lease.NewID()
	for _, tt := range []struct {
		name, file string
		make       func(path string) error
		corrupt    bool
		kept       bool
		cleaned    bool
	}{
		{"whole", id, put(`{"ID":"` + id + `"}` + "\n"), false, false, true},
		{"torn", id, put(`{"ID":"` + id + `","Scr`), true, true, false},
		{"torn after the brace", id, put(`{"ID":"` + id + `"}`), true, true, false},
		{"empty", id, put(""), true, true, false},
		{"two records", id, put(`{"ID":"` + id + `"}{}` + "\n"), true, true, false},
		{"two lines", id, put(`{"ID":"` + id + `"}` + "\n\n"), true, true, false},
		{"of another id", id, put(`{"ID":"` + lease.NewID() + `"}` + "\n"), true, true, false},
		{"unknown field", id, put(`{"ID":"` + id + `","Volumes":["/v"]}` + "\n"), true, true, false},
		{"relative path", id, put(`{"ID":"` + id + `","Scratch":["v"]}` + "\n"), true, true, false},
		{"link", id, func(path string) error { return os.Symlink("/etc/passwd", path) }, true, true, false},
		{"directory", id, func(path string) error { return os.Mkdir(path, 0o700) }, true, true, false},
		{"FIFO", id, func(path string) error { return unix.Mkfifo(path, 0o600) }, true, true, false},
		{"unfinished", id + ".new", put(`{"ID":"` + id), false, false, false},
		{"unfinished, empty", id + ".new", put(""), false, false, false},
		{"foreign", "README", put("text"), false, true, false},
		{"foreign, alike", "containment-1", put("text"), false, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			d := open(t, path)
			good := lease.NewID() // sorts anywhere, and must be reached in any case
			file, other := filepath.Join(path, tt.file), filepath.Join(path, good)
			if err := errors.Join(tt.make(file), put(`{"ID":"`+good+`"}`+"\n")(other)); err != nil {
				t.Fatal(err)
			}
			cleaned := map[string]bool{}
			err := d.Sweep(t.Context(), func(_ context.Context, rec lease.Record) error {
				cleaned[rec.ID] = true
				return nil
			})
			corrupt, isCorrupt := errors.AsType[*lease.CorruptError](err)
			if isCorrupt != tt.corrupt || isCorrupt && corrupt.Path != file || !isCorrupt && err != nil {
				t.Errorf("error %v, want a CorruptError of that file: %t", err, tt.corrupt)
			}
			if _, err := os.Lstat(file); (err == nil) != tt.kept {
				t.Errorf("kept: %t, want %t", err == nil, tt.kept)
			}
			if cleaned[id] != tt.cleaned || !cleaned[good] {
				t.Errorf("cleaned: %v", cleaned)
			}
		})
	}
}

// A lease whose resources could not be removed is there for the next sweep.
func TestSweepCleanFails(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := open(t, path)
	startHolder(t, "hold", path, "3").kill()
	errBusy := errors.New("busy")
	tried := 0
	err := d.Sweep(t.Context(), func(context.Context, lease.Record) error {
		if tried++; tried == 2 {
			return nil
		}
		return errBusy
	})
	if !errors.Is(err, errBusy) || tried != 3 {
		t.Errorf("%d tried, error %v", tried, err)
	}
	if left := files(t, path); len(left) != 2 {
		t.Errorf("left: %v, want two", left)
	}
	if got := sweep(t, d); len(got) != 2 {
		t.Errorf("the second sweep got %v", got)
	}
}

func TestSweepEndsWithContext(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := open(t, path)
	startHolder(t, "hold", path, "3").kill()
	errStop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	tried := 0
	err := d.Sweep(ctx, func(context.Context, lease.Record) error {
		tried++
		cancel(errStop)
		return nil
	})
	if !errors.Is(err, errStop) || tried != 1 {
		t.Errorf("%d tried, error %v", tried, err)
	}
	if left := files(t, path); len(left) != 2 {
		t.Errorf("left: %v, want two", left)
	}
}

// Nobody else may clean what somebody is cleaning.
func TestSweepHoldsWhileCleaning(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := open(t, path)
	startHolder(t, "hold", path, "1").kill()
	err := d.Sweep(t.Context(), func(context.Context, lease.Record) error {
		if inner := sweep(t, d); len(inner) != 0 {
			t.Errorf("a second sweep took %v", inner)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSweepOfRemovedDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	d := open(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(lease.Record{ID: lease.NewID()}); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a lease that nobody can find: %v", err)
	}
}

// Many sweeps at once meet each other between every two system calls; still each lease is cleaned once.
func TestManySweeps(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	const leases = 500
	for range leases {
		id := lease.NewID()
		if err := os.WriteFile(filepath.Join(path, id), []byte(`{"ID":"`+id+`"}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	times := map[string]int{}
	var wg sync.WaitGroup
	for range 8 {
		d := open(t, path)
		wg.Go(func() {
			err := d.Sweep(t.Context(), func(_ context.Context, rec lease.Record) error {
				mu.Lock()
				defer mu.Unlock()
				times[rec.ID]++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for id, n := range times {
		if n != 1 {
			t.Errorf("%s was cleaned %d times", id, n)
		}
	}
	if left := files(t, path); len(times) != leases || len(left) != 0 {
		t.Errorf("%d of %d were cleaned, left: %v", len(times), leases, left)
	}
}

// What its holder gave up on is swept while the holder lives, and not before.
func TestSweepAbandoned(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	rec := lease.Record{ID: lease.NewID()}
	l, err := d.Acquire(rec)
	if err != nil {
		t.Fatal(err)
	}
	var swept []string
	sweep := func() {
		t.Helper()
		err := d.Sweep(t.Context(), func(_ context.Context, rec lease.Record) error {
			swept = append(swept, rec.ID)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if sweep(); len(swept) != 0 {
		t.Fatalf("swept %q, which is held", swept)
	}
	if err := errors.Join(l.Abandon(), l.Release()); err != nil { // the second does nothing
		t.Fatal(err)
	}
	if sweep(); len(swept) != 1 || swept[0] != rec.ID {
		t.Errorf("swept %q", swept)
	}
	if sweep(); len(swept) != 1 {
		t.Errorf("swept %q again", swept)
	}
}
