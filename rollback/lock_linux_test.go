// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestClosed(t *testing.T) {
	t.Parallel()
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []*Store{s, {}} {
		ctx := t.Context()
		_, get := s.Get(ctx, ID{})
		_, diff := s.Diff(ctx, ID{}, ID{})
		_, fsys := s.FS(ID{})
		_, stats := s.Stats(ctx)
		_, prune := s.Prune(ctx, Retention{})
		var all error
		for _, err := range s.All(ctx) {
			all = err
		}
		for i, err := range []error{get, diff, fsys, stats, prune, all, s.Verify(ctx, ID{}), s.Pin(ctx, ID{}, "x"),
			s.Unpin(ctx, ID{}), s.Delete(ctx, ID{})} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("call %d: %v", i, err)
			}
		}
	}
}

func TestCloseWaits(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	leave, err := s.enter(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	select {
	case <-closed:
		t.Error("closed under a running call")
	case <-time.After(20 * time.Millisecond):
	}
	leave()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := fakeStore(t, dir, nil), fakeStore(t, dir, nil)
	shared, err := a.enter(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.enter(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	again()
	for _, s := range []*Store{a, b} {
		if _, err := s.Prune(t.Context(), Retention{}); !errors.Is(err, ErrLocked) {
			t.Errorf("prune during a call: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := b.Delete(ctx, ID{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("delete during a call: %v", err)
	}
	time.AfterFunc(10*time.Millisecond, shared)
	if err := b.Delete(t.Context(), ID{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("delete after it: %v", err)
	}
	if _, err := b.Prune(t.Context(), Retention{}); err != nil {
		t.Error(err)
	}
}

// TestLockFileIsReplaced: whoever waits for the lock of a file that somebody replaced meanwhile takes that of the new one.
func TestLockFileIsReplaced(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	old, err := s.enter(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	entered := make(chan error)
	go func() {
		leave, err := s.enter(t.Context(), false)
		if err == nil {
			defer leave()
		}
		entered <- err
	}()
	time.Sleep(5 * time.Millisecond) // so that it waits; if it does not yet, the test only proves less
	if err := s.dir.Remove(lockFile); err != nil {
		t.Fatal(err)
	}
	f, err := s.dir.Create(lockFile)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if ok, err := tryLock(f.File, true); err != nil || !ok {
		t.Fatal(ok, err)
	}
	old()
	select {
	case err := <-entered:
		t.Errorf("entered while the new file is locked: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	dropLock(f.File)
	if err := <-entered; err != nil {
		t.Error(err)
	}
}

// TestNumbersDoNotRepeat: two stores on one directory, as two processes have them.
func TestNumbersDoNotRepeat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 4 {
		s := fakeStore(t, dir, nil)
		wg.Go(func() {
			for j := range 10 {
				fakeCheckpoint(t, s, fakeDir{"f": fmt.Sprint(i, j)})
			}
		})
	}
	wg.Wait()
	s, seen := fakeStore(t, dir, nil), map[uint64]bool{}
	last := uint64(1 << 63)
	for c, err := range s.All(t.Context()) {
		if err != nil || seen[c.Seq] || c.Seq > last {
			t.Errorf("%d after %d, %v", c.Seq, last, err)
		}
		seen[c.Seq], last = true, c.Seq
	}
	if len(seen) != 40 {
		t.Errorf("%d checkpoints", len(seen))
	}
	if err := s.Verify(t.Context(), ID{}); err != nil {
		t.Error(err)
	}
}

// TestClockGoesBack: the order is that of the numbers.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	first := fakeAged(t, s, fakeDir{}, User, -time.Hour) // in the future
	second := fakeAged(t, s, fakeDir{}, User, 0)
	id, ok, err := s.last(fakeKey)
	if err != nil || !ok || id != second.ID || second.Parent != first.ID {
		t.Errorf("the last one is %v, %v, %v", id, ok, err)
	}
}
