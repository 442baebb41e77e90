// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/journal"
	"github.com/evoseal/containment/internal/testenv"
)

// A real process that is killed at any moment, again and again: no acknowledged record is lost, and at most one is there
// that was not acknowledged.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	total := 0
	for round := range 25 {
		cmd, lines := start(t, "append", cfg.Dir)
		acknowledged := total
		read := func() bool {
			if !lines.Scan() {
				return false
			}
			n, err := strconv.Atoi(lines.Text())
			if err != nil || n != acknowledged+1 {
				t.Fatalf("%q after %d, %v", lines.Text(), acknowledged, err)
			}
			acknowledged = n
			return true
		}
		for range rand.IntN(40) {
			read()
		}
		_ = cmd.Process.Kill()
		for read() {
		}
		_ = cmd.Wait()
		j, err := journal.Open(cfg)
		if errors.Is(err, journal.ErrNotExist) && acknowledged == 0 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if total, err = count(j); err != nil || total < acknowledged || total > acknowledged+1 {
			t.Fatalf("round %d: %d records, %v; %d were acknowledged", round, total, err, acknowledged)
		}
		closeIt(t, j)
	}
	if total == 0 {
		t.Fatal("no round appended anything: this proves nothing")
	}
}

// The lock keeps other processes out, does not need its holder to let it go, and is not inherited.
func TestLockOfAnotherProcess(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	closeIt(t, create(t, cfg))
	cmd, lines := start(t, "hold", cfg.Dir)
	if !lines.Scan() {
		t.Fatal("the holder ended before it held anything")
	}
	child, err := strconv.Atoi(lines.Text())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(child, unix.SIGKILL) })
	_, err = journal.Open(cfg)
	wantError(t, err, journal.ErrLocked)
	if _, err := journal.Verify(cfg); err != nil {
		t.Errorf("reading needs no lock: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := unix.Kill(child, 0); err != nil {
		t.Fatalf("the holder's child is dead (%v): this proves nothing", err)
	}
	closeIt(t, open(t, cfg))
}

// Openers and rotations at the same time: never two writers, and nothing that any of them wrote is lost.
func TestOneWriter(t *testing.T) {
	t.Parallel()
	cfg := state(t)
	var writers sync.WaitGroup
	var inside, acknowledged atomic.Int64
	closeIt(t, create(t, cfg))
	for range 4 {
		writers.Go(func() {
			for opened := 0; opened < 25; {
				j, err := journal.Open(cfg)
				if errors.Is(err, journal.ErrLocked) {
					runtime.Gosched()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				opened++
				if inside.Add(1) > 1 {
					t.Error("two writers")
				}
				n, err := count(j)
				if err != nil || int64(n) != acknowledged.Load() {
					t.Errorf("%d records, %v; want %d", n, err, acknowledged.Load())
				}
				if err := j.Rotate(j.Head(), fmt.Appendf(nil, `{"count":%d}`, n)); err != nil {
					t.Error(err)
				}
				if _, err := j.Append([]byte(`{}`), false); err != nil {
					t.Error(err)
				}
				acknowledged.Add(1)
				inside.Add(-1)
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
}

// A real disk that is full: a tmpfs in a mount namespace of a child, with which it vanishes.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "tmpfs-mount")
	cmd, lines := command(t, "full", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines.Scan()
	if err := cmd.Wait(); err != nil || lines.Text() != "done" {
		t.Errorf("%q, %v", lines.Text(), err)
	}
}
