// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/runaway"
)

func TestBypassAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	if err := s.config.Governor.Stop(runaway.ReasonOperator, "enough"); err != nil {
		t.Fatal(err)
	}
	v, err := b.Try(context.Background(), s.good("1"))
	if !errors.Is(err, runaway.ErrStopped) || v.Accepted || v.Iteration != 0 {
		t.Errorf("after a stop: %+v, %v", v, err)
	}
	if err := b.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if v, err := b.Try(context.Background(), s.good("1")); v != nil || !errors.Is(err, isolation.ErrClosed) {
		t.Errorf("after Close: %+v, %v", v, err)
	}
	if err := b.Close(context.Background()); !errors.Is(err, isolation.ErrClosed) {
		t.Errorf("Close twice: %v", err)
	}
	if len(s.fake.runs()) != 0 {
		t.Error("something ran")
	}
}

func TestBypassByAProposalOfNothing(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	g := generator(func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) { return nil, nil })
	for name, p := range map[string]isolation.Proposal{
		"nothing": {}, "both": {Generate: g, Edits: s.good("1").Edits}, "nil generator": {Generate: generator(nil)},
	} {
		if v, err := b.Try(context.Background(), p); v != nil || !errors.Is(err, isolation.ErrProposal) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	if n := b.Status().Governor.Attempts; n != 0 {
		t.Errorf("%d iterations began", n)
	}
}

// TestBypassFromWithin: generator and judge call Try and Close of the boundary that calls them.
func TestBypassFromWithin(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	var b *isolation.Boundary
	inner := func(ctx context.Context) {
		if v, err := b.Try(ctx, s.good("inner")); v != nil || !errors.Is(err, isolation.ErrBusy) {
			t.Errorf("Try from within: %+v, %v", v, err)
		}
	}
	s.config.Judge = judge(func(ctx context.Context, _ isolation.Evaluation) (isolation.Ruling, error) {
		inner(ctx)
		return isolation.Keep, nil
	})
	b, _ = s.open()
	g := generator(func(ctx context.Context, _ *isolation.Spender) ([]allowlist.Edit, error) {
		inner(ctx)
		return s.good("1").Edits, nil
	})
	if v, err := b.Try(context.Background(), isolation.Proposal{Generate: g}); err != nil || !v.Accepted {
		t.Errorf("%+v, %v", v, err)
	}
	closing := generator(func(ctx context.Context, _ *isolation.Spender) ([]allowlist.Edit, error) {
		if err := b.Close(ctx); !errors.Is(err, isolation.ErrBusy) {
			t.Errorf("Close from within: %v", err)
		}
		return s.good("2").Edits, nil
	})
	before := s.state()
	v, err := b.Try(context.Background(), isolation.Proposal{Generate: closing})
	if err != nil || v.Accepted || before != s.state() {
		t.Errorf("after Close from within: %+v, %v", v, err)
	}
	if n := len(s.fake.runs()); n != 1 {
		t.Errorf("%d runs", n)
	}
}

func TestBypassFromManyGoroutines(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	var inside, most atomic.Int32
	s.fake.run = func(_ context.Context, spec executor.Spec) (*executor.Result, error) {
		if n := inside.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer inside.Add(-1)
		runtime.Gosched()
		return gated(spec)
	}
	b, _ := s.open()
	p := s.good("1")
	var wg sync.WaitGroup
	var verdicts, busy, accepted atomic.Int32
	for range 64 {
		wg.Go(func() {
			if st := b.Status(); st.Closed || !st.Proven.Has(isolation.TierGuarded.Needs()) {
				t.Errorf("%+v", st)
			}
			switch v, err := b.Try(context.Background(), p); {
			case errors.Is(err, isolation.ErrBusy):
				busy.Add(1)
			case v != nil:
				verdicts.Add(1)
				if v.Accepted {
					accepted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 || accepted.Load() != 1 || int(verdicts.Load()+busy.Load()) != 64 {
		t.Errorf("%d at once, %d verdicts, %d accepted, %d busy", most.Load(), verdicts.Load(), accepted.Load(), busy.Load())
	}
}

// TestBypassByKeepingTheSpender: a generator keeps what it was given, and tries to spend, ask and go on with it.
func TestBypassByKeepingTheSpender(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.limits = runaway.Limits{Budget: runaway.Usage{Tokens: 100}}
	s.metered = runaway.MeterTokens
	var kept *isolation.Spender
	s.config.Judge = judge(func(ctx context.Context, _ isolation.Evaluation) (isolation.Ruling, error) {
		if err := kept.Spend(runaway.Usage{Tokens: 7}); err != nil {
			t.Errorf("what is spent is not charged: %v", err)
		}
		if _, err := kept.Seen(runaway.Fingerprint{9}); !errors.Is(err, runaway.ErrLost) {
			t.Errorf("Seen: %v", err)
		}
		if err := kept.Check(ctx); !errors.Is(err, runaway.ErrLost) {
			t.Errorf("Check: %v", err)
		}
		return isolation.Keep, nil
	})
	b, _ := s.open()
	g := generator(func(_ context.Context, sp *isolation.Spender) ([]allowlist.Edit, error) {
		kept = sp
		return s.good("1").Edits, sp.Spend(runaway.Usage{Tokens: 3})
	})
	v, err := b.Try(context.Background(), isolation.Proposal{Generate: g, Estimate: runaway.Usage{Tokens: 20}})
	if err != nil || !v.Accepted {
		t.Fatalf("%+v, %v", v, err)
	}
	if err := kept.Spend(runaway.Usage{Tokens: 5}); !errors.Is(err, runaway.ErrLost) {
		t.Errorf("after the end: %v", err)
	}
	if got := b.Status().Governor.Spent.Tokens; got != 15 {
		t.Errorf("%d tokens are charged, want 15", got)
	}
}

// TestBypassByChangingEditsLater: the slice that a generator returned changes after it was judged.
func TestBypassByChangingEditsLater(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	edits := s.good("1").Edits
	s.config.Judge = judge(func(context.Context, isolation.Evaluation) (isolation.Ruling, error) {
		edits[0].Path = "gate/check.sh"
		copy(edits[0].Content, "ALPHA")
		return isolation.Keep, nil
	})
	b, _ := s.open()
	g := generator(func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) { return edits, nil })
	if v, err := b.Try(context.Background(), isolation.Proposal{Generate: g}); err != nil || !v.Accepted {
		t.Fatalf("%+v, %v", v, err)
	}
	for name, want := range map[string]string{"src/a.txt": "alpha 1\n", "gate/check.sh": files["gate/check.sh"]} {
		if got, err := os.ReadFile(filepath.Join(s.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
}

// TestBypassByProposingTheSameAgain: a variant that was judged is not judged again.
func TestBypassByProposingTheSameAgain(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	if v, err := b.Try(context.Background(), s.bad("1")); err != nil || v.Accepted {
		t.Fatalf("%+v, %v", v, err)
	}
	v, err := b.Try(context.Background(), s.bad("1"))
	if err != nil || v.Accepted || !v.Because(isolation.WhySeen) || len(s.fake.runs()) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestBypassBySwappingTheExecutor: the slice of candidates changes after Open, and the executor in use claims something
// else than it was proven to hold.
func TestBypassBySwappingTheExecutor(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.hooks.Current = nil // the real look
	s.hooks.Verify = func(ctx context.Context, ex executor.Executor, o *isolation.VerifyOptions) (isolation.Report, error) {
		if ex.Capabilities() != executor.AllCapabilities {
			return isolation.Report{}, isolation.ErrUnproven
		}
		r, err := isolation.Believe(ctx, ex, o)
		if err != nil {
			return r, err
		}
		return isolation.Stamp(r, ex)
	}
	b, _ := s.open()
	other := &fakeExecutor{caps: executor.AllCapabilities}
	s.config.Executors[0].Executor = other
	if v, err := b.Try(context.Background(), s.good("1")); err != nil || !v.Accepted {
		t.Fatalf("%+v, %v", v, err)
	}
	if len(other.runs()) != 0 {
		t.Error("the executor was swapped")
	}
	s.fake.caps = isolation.TierGuarded.Needs() // it has lost what it had
	v, err := b.Try(context.Background(), s.good("2"))
	if !errors.Is(err, isolation.ErrDenied) || v.Accepted || len(s.fake.runs()) != 1 {
		t.Errorf("%+v, %v; %d runs", v, err, len(s.fake.runs()))
	}
	if stop := b.Status().Governor.Stop; stop == nil || stop.Reason != runaway.ReasonIsolation {
		t.Errorf("the run has not stopped: %v", stop)
	}
}

// TestBypassByReport: a report that the judge would take for that of the run, put into the tree.
func TestBypassByReport(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.config.Judge, s.config.Run.Artifacts = isolation.JUnit{File: "src/report.xml", MinTests: 1}, []string{"src/*.xml"}
	s.write("src/report.xml", "<testsuite/>")
	refuses(t, s, "src/report.xml")

	s = setScene(t)
	s.config.Judge, s.config.Run.Artifacts = reading("src/report.xml"), []string{"src/*.xml"}
	b, _ := s.open()
	v, err := b.Try(context.Background(), isolation.Proposal{Edits: []allowlist.Edit{
		{Op: allowlist.Create, Path: "src/Report.xml", Content: []byte("<testsuite/>")},
	}})
	if err != nil || !v.Because(isolation.WhyEditDenied) || len(s.fake.runs()) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

// reading is a judge that needs an artifact.
type reading string

func (r reading) Needs() isolation.JudgeNeeds {
	return isolation.JudgeNeeds{Artifacts: []string{string(r)}}
}

func (r reading) Judge(context.Context, isolation.Evaluation) (isolation.Ruling, error) {
	return isolation.Keep, nil
}

// TestBypassByFloodingTheLog: a generator whose edits give more reasons than a record of the log holds.
func TestBypassByFloodingTheLog(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	var edits []allowlist.Edit
	for n := range 500 {
		edits = append(edits, allowlist.Edit{Op: allowlist.Create, Path: fmt.Sprintf("out/%03d%s", n, strings.Repeat("<\x01é", 60))})
	}
	v, err := b.Try(context.Background(), isolation.Proposal{Edits: edits})
	if err != nil || len(v.Reasons) != 16 || v.Reasons[15].Detail != "and 487 more" {
		t.Fatalf("%+v, %v", v, err)
	}
	g := generator(func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) {
		return nil, errors.New(strings.Repeat("<\x01\xff\n", 1<<16))
	})
	v, err = b.Try(context.Background(), isolation.Proposal{Generate: g})
	if err != nil || !v.Because(isolation.WhyGenerateFailed) {
		t.Fatalf("%v, %v", v, err)
	}
	if got := s.lastVerdict(); got.Iteration != 2 {
		t.Errorf("the log says %+v", got)
	}
}

// TestCancelledBeforeTheStep: a context that is over stops nothing but the call.
func TestCancelledBeforeTheStep(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.hooks.Current = func(ctx context.Context, _ isolation.Report, _ executor.Executor) error { return ctx.Err() }
	b, _ := s.open()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if v, err := b.Try(ctx, s.good("1")); !errors.Is(err, context.Canceled) || v.Accepted || v.Iteration != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := b.Try(context.Background(), s.good("1")); err != nil || !v.Accepted {
		t.Errorf("it does not go on: %+v, %v", v, err)
	}
}
