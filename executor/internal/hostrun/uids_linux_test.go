// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/lease"
	"github.com/evoseal/containment/internal/testenv"
)

// uids of this test alone.
const testUID, testUIDs = 64_880, 2

func openHost(t *testing.T) *Host {
	t.Helper()
	h, err := Open(Config{Name: "test", StateDir: t.TempDir(), FirstUID: testUID, UIDs: testUIDs, Lacks: Lacks{Cgroups: true, Mounts: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Release(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// takeAll takes every uid, so that the one that is looked for is among them, and returns those that were not released.
func takeAll(t *testing.T, h *Host) (all, dirty []*lease.Slot) {
	t.Helper()
	for range testUIDs {
		slot, err := h.slots.Take()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, slot)
		if slot.Dirty {
			dirty = append(dirty, slot)
		}
	}
	return all, dirty
}

func releaseAll(t *testing.T, slots []*lease.Slot) {
	t.Helper()
	for _, slot := range slots {
		if err := slot.Release(); err != nil {
			t.Error(err)
		}
	}
}

// A uid whose run was left in a directory of another executor: it is given away when the guard there is gone, and the
// run's files with it.
func TestUIDOfAnotherState(t *testing.T) {
	testenv.Need(t, "root")
	left := filepath.Join(t.TempDir(), lease.NewID())
	if err := os.Mkdir(left, 0o710); err != nil {
		t.Fatal(err)
	}
	guard, err := os.Open(left)
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	if err := unix.Flock(int(guard.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	crashed, h := openHost(t), openHost(t)
	all, _ := takeAll(t, crashed)
	if _, err := h.takeUID(t.Context()); !errors.Is(err, lease.ErrNoSlot) {
		t.Errorf("two executors have the same uid: %v", err)
	}
	for _, slot := range all {
		if err := errors.Join(slot.Leave(left), slot.Abandon()); err != nil {
			t.Fatal(err)
		}
	}
	corrupt := filepath.Join(h.State, "leases", lease.NewID())
	if err := os.WriteFile(corrupt, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	const alive = 100 * time.Millisecond
	begin := time.Now()
	gone := make(chan error, 1)
	time.AfterFunc(alive, func() { gone <- unix.Flock(int(guard.Fd()), unix.LOCK_UN) })
	var taken []*lease.Slot
	for range testUIDs {
		slot, err := h.takeUID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, slot)
	}
	if time.Since(begin) < alive {
		t.Error("a uid was given away that a guard could still kill")
	}
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the run left is there: %v", err)
	}
	releaseAll(t, taken)
}

// The sweep of an old lease does not declare a uid clean that a later run had, of an executor elsewhere.
func TestSweepKeepsForeignUIDs(t *testing.T) {
	testenv.Need(t, "root")
	for name, tc := range map[string]struct {
		own   bool
		dirty int
	}{"the run's own": {true, testUIDs - 1}, "another run's": {false, testUIDs}} {
		h := openHost(t)
		all, _ := takeAll(t, h)
		mine := filepath.Join(h.Scratch, lease.NewID())
		for i, slot := range all {
			left := filepath.Join(t.TempDir(), lease.NewID())
			if tc.own && i == 0 {
				left = mine
			}
			if err := errors.Join(slot.Leave(left), slot.Abandon()); err != nil {
				t.Fatal(err)
			}
		}
		taken, err := h.sweepProcesses(t.Context(), lease.Record{UID: all[0].UID})
		if err != nil || taken == nil {
			t.Fatalf("%v, %v", taken, err)
		}
		if err := giveBack(taken, lease.Record{Scratch: []string{mine}}, nil); err != nil {
			t.Error(err)
		}
		all, dirty := takeAll(t, h)
		if len(dirty) != tc.dirty {
			t.Errorf("%s: %d uids are dirty, must be %d", name, len(dirty), tc.dirty)
		}
		releaseAll(t, all)
	}
}
