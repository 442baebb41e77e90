// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/evoseal/containment/internal/lease"
)

// testBase is far from everything that hosts use.
const testBase = 2_100_000_000

func openSlots(t testing.TB, dir string, count uint32) *lease.Slots {
	t.Helper()
	s, err := lease.OpenSlots(lease.SlotConfig{Dir: dir, Base: testBase, Count: count})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func take(t *testing.T, s *lease.Slots) *lease.Slot {
	t.Helper()
	slot, err := s.Take()
	if err != nil {
		t.Fatal(err)
	}
	return slot
}

func TestSlotRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		base, count uint32
		caller      uint64
		uid         uint32 // the id that is in the way
		ok          bool
	}{
		{"usual", 60000, 64, 0, 0, true},
		{"lowest", 1000, 1, 0, 0, true},
		{"highest", math.MaxUint32 - 1, 1, 0, 0, true},
		{"just below nobody", 65533, 1, 0, 0, true},
		{"just above the 16-bit ids", 65536, 1, 0, 0, true},
		{"zero", 0, 0, 0, 0, false},
		{"no ids", 60000, 0, 0, 0, false},
		{"too many", 100000, 1<<16 + 1, 0, 0, false},
		{"root", 0, 10, 5, 0, false},
		{"system users", 999, 10, 0, 999, false},
		{"nobody", 65534, 1, 0, 65534, false},
		{"nobody inside", 65000, 1000, 0, 65534, false},
		{"no id of 16 bits", 65535, 1, 0, 65535, false},
		{"no id", math.MaxUint32, 1, 0, math.MaxUint32, false},
		{"no id inside", math.MaxUint32 - 9, 10, 0, math.MaxUint32, false},
		{"overflow", math.MaxUint32 - 9, 1 << 16, 0, math.MaxUint32, false},
		{"the caller", 60000, 64, 60063, 60063, false},
	} {
		c := lease.SlotConfig{Base: tt.base, Count: tt.count}
		err := c.CheckRange(tt.caller)
		rangeErr, isRange := errors.AsType[*lease.RangeError](err)
		if tt.ok && err != nil || !tt.ok && (!isRange || rangeErr.UID != tt.uid || rangeErr.Rule == "") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestSlotUsers(t *testing.T) {
	t.Parallel()
	c := lease.SlotConfig{Base: 60000, Count: 10}
	for _, tt := range []struct {
		name, passwd, subuid string
		uid                  uint32 // 0: no fault
	}{
		{"usual", "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n", "me:100000:65536\n", 0},
		{"around", "a:x:59999:1::/:\nb:x:60010:1::/:\n", "a:50000:10000\nb:60010:10\nc:60005:0\n", 0},
		{"first", "a:x:60000:1::/:", "", 60000},
		{"last", "root:x:0:0::/root:/bin/sh\na:x:60009:1::/:\n", "", 60009},
		{"nonsense", "\n+::::::\n# text\na:x:many:1::/:\n", "\n# text\na:b:c\n", 0},
		{"subordinate from below", "", "a:50000:10001\n", 60000},
		{"subordinate inside", "", "a:60004:2\n", 60004},
		{"subordinate around", "", "a:1:4000000000\n", 60000},
	} {
		err := errors.Join(c.CheckUsers(strings.NewReader(tt.passwd)), c.CheckSubordinate(strings.NewReader(tt.subuid)))
		rangeErr, isRange := errors.AsType[*lease.RangeError](err)
		if tt.uid == 0 && err != nil || tt.uid != 0 && (!isRange || rangeErr.UID != tt.uid) {
			t.Errorf("%s: %v, want a fault of %d", tt.name, err, tt.uid)
		}
	}
}

// OpenSlots itself asks all of it.
func TestOpenSlotsRefuses(t *testing.T) {
	t.Parallel()
	_, err := lease.OpenSlots(lease.SlotConfig{Dir: t.TempDir(), Base: 0, Count: 1})
	if _, ok := errors.AsType[*lease.RangeError](err); !ok {
		t.Errorf("root: %v", err)
	}
	_, err = lease.OpenSlots(lease.SlotConfig{Base: testBase, Count: 1})
	if _, ok := errors.AsType[*lease.DirError](err); !ok {
		t.Errorf("no directory: %v", err)
	}
}

func TestSlotsAreExclusive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := openSlots(t, dir, 4), openSlots(t, dir, 4)
	held := map[uint32]*lease.Slot{}
	for i := range 4 {
		slot := take(t, []*lease.Slots{one, two}[i%2])
		if held[slot.UID] != nil || slot.UID < testBase || slot.UID >= testBase+4 || slot.Dirty {
			t.Errorf("slot %d, dirty %t", slot.UID, slot.Dirty)
		}
		held[slot.UID] = slot
	}
	if _, err := one.Take(); !errors.Is(err, lease.ErrNoSlot) {
		t.Errorf("a fifth of four: %v", err)
	}
	if err := errors.Join(held[testBase].Release(), held[testBase].Release()); err != nil {
		t.Error(err)
	}
	if slot := take(t, two); slot.UID != testBase || slot.Dirty {
		t.Errorf("slot %d, dirty %t", slot.UID, slot.Dirty)
	}
}

// An id is left to rest while there are others.
func TestSlotsRotate(t *testing.T) {
	t.Parallel()
	s := openSlots(t, t.TempDir(), 5)
	var last []uint32
	for range 5 {
		slot := take(t, s)
		for _, uid := range last {
			if uid == slot.UID {
				t.Errorf("id %d came back after %d others", uid, len(last))
			}
		}
		last = append(last, slot.UID)
		if err := slot.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever gets an id that was not given back properly must know.
func TestSlotDirty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSlots(t, dir, 1)
	if err := take(t, s).Abandon(); err != nil {
		t.Fatal(err)
	}
	slot := take(t, s)
	if !slot.Dirty {
		t.Error("an abandoned id is handed out as clean")
	}
	if err := slot.Release(); err != nil {
		t.Fatal(err)
	}
	h := startHolder(t, "slot", dir, strconv.Itoa(testBase), "1")
	if _, err := s.Take(); !errors.Is(err, lease.ErrNoSlot) {
		t.Errorf("an id that another process holds: %v", err)
	}
	h.kill()
	h.mustLive(t)
	if slot = take(t, s); !slot.Dirty {
		t.Error("the id of a killed process is handed out as clean")
	}
	if err := slot.Release(); err != nil {
		t.Fatal(err)
	}
	if slot = take(t, s); slot.Dirty {
		t.Error("a released id is handed out as dirty")
	}
}

func TestSlotsConcurrently(t *testing.T) {
	t.Parallel()
	const count = 16
	s := openSlots(t, t.TempDir(), count)
	var users [count]atomic.Int32
	var wg sync.WaitGroup
	var taken atomic.Int32
	for range 64 {
		wg.Go(func() {
			for range 100 {
				slot, err := s.Take()
				if errors.Is(err, lease.ErrNoSlot) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				taken.Add(1)
				if n := users[slot.UID-testBase].Add(1); n != 1 || slot.Dirty {
					t.Errorf("id %d has %d users, dirty %t", slot.UID, n, slot.Dirty)
				}
				users[slot.UID-testBase].Add(-1)
				if err := slot.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() < 64 {
		t.Errorf("only %d were taken", taken.Load())
	}
}

// Whoever cleans up after a dead holder asks for that one id.
func TestTakeUID(t *testing.T) {
	t.Parallel()
	s := openSlots(t, t.TempDir(), 2)
	slot := take(t, s)
	if _, err := s.TakeUID(slot.UID); !errors.Is(err, lease.ErrNoSlot) {
		t.Errorf("an id that is held: %v", err)
	}
	if _, err := s.TakeUID(testBase + 2); err == nil {
		t.Error("an id outside of the range was given")
	}
	never := testBase + (slot.UID-testBase+1)%2
	if _, err := s.TakeUID(never); !errors.Is(err, lease.ErrNoSlot) {
		t.Errorf("an id that nobody had: %v", err)
	}
	if err := slot.Abandon(); err != nil {
		t.Fatal(err)
	}
	again, err := s.TakeUID(slot.UID)
	if err != nil || again.UID != slot.UID || !again.Dirty {
		t.Fatalf("%+v, %v", again, err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

// The one who gets an id that was not released learns what was written down, and nothing of those before.
func TestSlotLeft(t *testing.T) {
	t.Parallel()
	s := openSlots(t, t.TempDir(), 1)
	slot := take(t, s)
	if slot.Left != "" {
		t.Errorf("left %q", slot.Left)
	}
	long, short := "/"+strings.Repeat("x", 300), "/short"
	for _, dir := range []string{long, short} {
		if err := errors.Join(slot.Leave(dir), slot.Abandon()); err != nil {
			t.Fatal(err)
		}
		if slot = take(t, s); !slot.Dirty || slot.Left != dir {
			t.Errorf("dirty %v, left %q, must be %q", slot.Dirty, slot.Left, dir)
		}
	}
	for _, bad := range []string{"/a\nb", strings.Repeat("x", 5000)} {
		if err := slot.Leave(bad); err == nil {
			t.Errorf("%.10q was accepted", bad)
		}
	}
	if err := slot.Release(); err != nil {
		t.Fatal(err)
	}
	if slot = take(t, s); slot.Dirty || slot.Left != "" {
		t.Errorf("released: dirty %v, left %q", slot.Dirty, slot.Left)
	}
	if err := slot.Abandon(); err != nil {
		t.Fatal(err)
	}
	if slot = take(t, s); !slot.Dirty || slot.Left != "" {
		t.Errorf("nothing written: dirty %v, left %q", slot.Dirty, slot.Left)
	}
	if err := slot.Release(); err != nil {
		t.Fatal(err)
	}
}
