// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/evoseal/containment/runaway"
	"github.com/google/go-cmp/cmp"
)

// TestOneSync: exactly one sync for a durable iteration, whatever is reported within its reservation. The clock stands
// still in a bubble, so that the sync that comes with time does not.
func TestOneSync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := &calls{}
		g := open(t, c.store(filepath.Join(t.TempDir(), "s")), runaway.Limits{Budget: runaway.Usage{Tokens: 1000,
			Cost: none}}, metered)
		iteration := func(spend int64) {
			it := beginWith(t, g, runaway.Estimate{Tokens: 10})
			_, err := it.Seen(print(it.Number()))
			if err := errors.Join(err, it.Spend(runaway.Usage{Tokens: 5, Cost: 7}),
				it.Spend(runaway.Usage{Tokens: spend - 5}), it.End(accepted)); err != nil {
				t.Fatal(err)
			}
		}
		before := c.count("sync")
		for range 50 {
			iteration(10)
		}
		if got := c.count("sync") - before; got != 50 {
			t.Errorf("%d syncs for 50 iterations", got)
		}
		before = c.count("sync")
		iteration(11)
		if got := c.count("sync") - before; got != 2 {
			t.Errorf("%d syncs for an iteration that spent more than it reserved", got)
		}
		if got := c.count("sync directory"); got > 3 {
			t.Errorf("%d syncs of the directory", got)
		}
	})
}

// TestDiskFails: a write or a sync that fails at any record stops the run with a clear error, nothing else is admitted,
// and what had begun is found again.
func TestDiskFails(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{syscall.ENOSPC, syscall.EIO} {
		for _, op := range []string{"write", "sync"} {
			for skip := range 9 {
				dir := filepath.Join(t.TempDir(), "s")
				c := &calls{}
				g := open(t, c.store(dir), runaway.Limits{}, nil)
				left := skip
				c.fail(func(_ int, called string) error {
					if called != op {
						return nil
					}
					if left--; left >= 0 {
						return nil
					}
					return cause
				})
				begun := 0
				var err error
				for err == nil {
					var it *runaway.Iteration
					if it, err = g.Begin(t.Context(), runaway.Estimate{}); err == nil {
						begun++
						_, err = it.Seen(print(begun))
						err = errors.Join(err, it.End(fresh(begun)))
					}
				}
				if stop := wantStop(t, err, runaway.ReasonState); !errors.Is(err, cause) || stop.Graceful {
					t.Fatalf("%s, %d: %v", op, skip, err)
				}
				if _, again := g.Begin(t.Context(), runaway.Estimate{}); !errors.Is(again, runaway.ErrStopped) ||
					!errors.Is(again, cause) {
					t.Errorf("%s, %d: begin after the failure: %v", op, skip, again)
				}
				if counted := g.Status().Attempts; counted < begun {
					t.Errorf("%s, %d: %d counted, %d begun", op, skip, counted, begun)
				}
				if err := g.Close(t.Context()); !errors.Is(err, cause) {
					t.Errorf("%s, %d: close: %v", op, skip, err)
				}
				c.fail(nil)
				if got := open(t, c.store(dir), runaway.Limits{}, nil).Status().Attempts; got < begun || got > begun+1 {
					t.Errorf("%s, %d: %d found again, %d begun", op, skip, got, begun)
				}
			}
		}
	}
}

// TestStopThatCannotBeWritten holds in this session, and says that it is not recorded.
func TestStopThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	c := &calls{}
	g, err := runaway.Open(t.Context(), runID, runaway.Limits{}, c.store(filepath.Join(t.TempDir(), "s")), nil)
	if err != nil {
		t.Fatal(err)
	}
	it := begin(t, g)
	c.fail(func(int, string) error { return syscall.EIO })
	if err := g.Stop(runaway.ReasonIsolation, "canary"); !errors.Is(err, runaway.ErrStopped) ||
		!errors.Is(err, syscall.EIO) {
		t.Errorf("stop: %v", err)
	}
	_, err = g.Begin(t.Context(), runaway.Estimate{})
	wantStop(t, err, runaway.ReasonIsolation)
	if err := it.End(accepted); !errors.Is(err, syscall.EIO) {
		t.Errorf("end: %v", err)
	}
	_ = g.Close(t.Context())
}

// TestSnapshots: the journal is shortened again and again, also while iterations are open, and nothing is lost.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	lenient := runaway.Limits{
		Budget: runaway.Usage{Tokens: 10_000}, MaxConcurrent: 3, MaxConsecutiveFailures: 999, MaxFailures: none,
		MaxSameClass: none, MaxDuplicates: none,
	}
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &runaway.Options{Metered: runaway.MeterTokens}
			plain, short := open(t, runaway.UnsafeMemStore(), lenient, o), open(t, store(), lenient, o)
			for n := range 12 {
				runaway.SnapshotEvery(short, 1+n%7)
				busyDay(t, plain, lenient, n)
				busyDay(t, short, lenient, n)
				if n%4 == 3 {
					short = reopen(t, short, store(), lenient, o)
				}
				a, b := plain.Status(), short.Status()
				a.Active, b.Active, b.Head = 0, 0, ""
				if diff := cmp.Diff(a, b); diff != "" {
					t.Fatalf("%d: without snapshots and with (-/+):\n%s", n, diff)
				}
			}
			if seen, err := begin(t, short).Seen(print(3)); !seen || err != nil {
				t.Errorf("a variant was forgotten: %v, %v", seen, err)
			}
			_ = short.Close(t.Context())
		})
	}
}

// busyDay does something of everything.
func busyDay(t *testing.T, g *runaway.Governor, l runaway.Limits, n int) {
	t.Helper()
	long := beginWith(t, g, runaway.Estimate{Tokens: 50})
	inner := child(t, long, "in", l)
	deep := beginWith(t, inner, runaway.Estimate{Tokens: 9})
	for i, o := range []runaway.Outcome{fresh(n), {Kind: runaway.Failed, Class: "x"}, scores(1)(n), neutral} {
		it := beginWith(t, g, runaway.Estimate{Tokens: 10})
		_, err := it.Seen(print(n + i))
		if err := errors.Join(err, it.Spend(runaway.Usage{Tokens: 9}), it.End(o)); err != nil {
			t.Fatal(err)
		}
		if err := beginWith(t, inner, runaway.Estimate{Tokens: 2}).End(rejected); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(deep.Spend(runaway.Usage{Tokens: 11}), long.End(fresh(-n))); err != nil {
		t.Fatal(err)
	}
}
