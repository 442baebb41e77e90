// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/runaway"
)

func TestClaimHardIterationCap(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.limits = runaway.Limits{MaxIterations: 3}
	made := 0
	for session := range 5 { // a daemon that restarts whenever it is stopped
		b, closeAll, err := s.tryOpen()
		if err != nil {
			if !errors.Is(err, runaway.ErrStopped) {
				t.Fatal(err)
			}
			break
		}
		for n := range 10 {
			_, err := b.Try(context.Background(), s.good(fmt.Sprint(session, n)))
			if errors.Is(err, runaway.ErrStopped) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if made++; n == 0 {
				break // the daemon restarts
			}
		}
		closeAll()
	}
	if made != 3 || len(s.fake.runs()) != 3 {
		t.Errorf("%d steps and %d runs, want 3", made, len(s.fake.runs()))
	}
}

func TestClaimHardIterationCapForTwoAtOnce(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.open()
	other := sceneIn(t, s.home)
	// The tree is locked, and so is the run: whoever comes second gets neither.
	if _, err := allowlist.OpenTree(other.dir, nil); !errors.Is(err, allowlist.ErrLocked) {
		t.Errorf("the tree is not locked: %v", err)
	}
	_, err := runaway.Open(context.Background(), "run", runaway.Limits{}, must(runaway.FileStore(filepath.Join(s.home, "ledger"))), nil)
	if !errors.Is(err, runaway.ErrStateLocked) {
		t.Errorf("the run is not locked: %v", err)
	}
	// Two boundaries in one program, of the same governor and tree: the decision log is locked.
	if b, err := isolation.OpenWith(context.Background(), s.config, s.hooks); !errors.Is(err, isolation.ErrLog) {
		t.Errorf("a second boundary was opened: %v, %v", b, err)
	}
}

// TestClaimBreakerOnRejectedOrFailedVariants: whatever fails, five times in a row are enough.
func TestClaimBreakerOnRejectedOrFailedVariants(t *testing.T) {
	t.Parallel()
	for name, e := range endings() {
		if e.kind == runaway.Accepted || !e.kind.Failure() || e.err != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			if e.prepare != nil {
				e.prepare(s)
			}
			b, _ := s.open()
			n := 0
			var err error
			for ; err == nil && n < 20; n++ {
				s.config.Trust.DeclaredBy = fmt.Sprint(n)
				_, err = b.Try(context.Background(), e.propose(s))
			}
			var stop *runaway.StopError
			if !errors.As(err, &stop) || stop.Reason != runaway.ReasonConsecutiveFailures || n != 5 {
				t.Errorf("after %d steps: %v", n, err)
			}
		})
	}
}

func TestClaimBudgetStopsTheLoop(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	// A limit that nobody reports on is no limit.
	_, err := runaway.Open(context.Background(), "other", runaway.Limits{Budget: runaway.Usage{Tokens: 10}},
		runaway.UnsafeMemStore(), &runaway.Options{KillFile: filepath.Join(s.home, "STOP")})
	if !errors.Is(err, runaway.ErrUnmetered) {
		t.Errorf("a limit without a meter was taken: %v", err)
	}
	s.limits = runaway.Limits{Budget: runaway.Usage{Tokens: 100}}
	s.metered = runaway.MeterTokens
	b, _ := s.open()
	spending := generator(func(_ context.Context, sp *isolation.Spender) ([]allowlist.Edit, error) {
		_ = sp.Spend(runaway.Usage{Tokens: 1000}) // and goes on as if nothing were
		return s.good("1").Edits, nil
	})
	v, err := b.Try(context.Background(), isolation.Proposal{Generate: spending, Estimate: runaway.Usage{Tokens: 50}})
	if !errors.Is(err, runaway.ErrStopped) || v.Accepted || v.Stage != isolation.StagePropose || len(s.fake.runs()) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err = b.Try(context.Background(), s.good("2")); !errors.Is(err, runaway.ErrStopped) || v.Accepted {
		t.Errorf("after the stop: %+v, %v", v, err)
	}
}

func TestClaimStopIsReported(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.limits = runaway.Limits{MaxConsecutiveFailures: 2}
	b, closeAll := s.open()
	var v *isolation.Verdict
	var err error
	for n := 0; err == nil && n < 9; n++ {
		v, err = b.Try(context.Background(), s.bad(fmt.Sprint(n)))
	}
	var stop *runaway.StopError
	if !errors.As(err, &stop) || stop.Reason != runaway.ReasonConsecutiveFailures {
		t.Fatalf("the stop is %v", err)
	}
	if got := b.Status().Governor.Stop; got == nil || got.Reason != stop.Reason {
		t.Errorf("the status says %v", got)
	}
	closeAll()
	s.sameAsRecorded(v, runaway.Rejected)
	_, err = runaway.Open(context.Background(), "run", s.limits, must(runaway.FileStore(filepath.Join(s.home, "ledger"))), nil)
	var again *runaway.StopError
	if !errors.As(err, &again) || again.Reason != stop.Reason {
		t.Errorf("the journal says %v", err)
	}
}

// TestClaimKillFileEndsAStep: a kill file takes effect before the next change is made, not at the next iteration.
func TestClaimKillFileEndsAStep(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"propose", "plan", "checkpoint", "apply", "seal", "run", "judge"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.hooks.At = func(p string) {
				if p == point {
					if err := os.WriteFile(filepath.Join(s.home, "ledger", runaway.DefaultKillFile), nil, 0o600); err != nil {
						t.Error(err)
					}
				}
			}
			b, _ := s.open()
			before := s.state()
			v, err := b.Try(context.Background(), s.good("1"))
			var stop *runaway.StopError
			if !errors.As(err, &stop) || stop.Reason != runaway.ReasonKillFile || v.Accepted || before != s.state() {
				t.Errorf("%+v, %v", v, err)
			}
			if !v.Because(isolation.WhyStopped) {
				t.Errorf("the reasons are %v", v.Reasons)
			}
		})
	}
}

// TestCancelledStepRestores: the end of the caller's context, or Close, ends a step and not its restoration.
func TestCancelledStepRestores(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"context", "close"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			started := make(chan struct{})
			s.fake.run = func(ctx context.Context, _ executor.Spec) (*executor.Result, error) {
				close(started)
				<-ctx.Done()
				return &executor.Result{Cause: executor.CauseCancelled}, nil
			}
			b, _ := s.open()
			before := s.state()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() {
				<-started
				if how == "context" {
					cancel()
					return
				}
				if err := b.Close(context.Background()); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			begun := time.Now()
			v, err := b.Try(ctx, s.good("1"))
			if err != nil || v.Accepted || !v.Because(isolation.WhyCancelled) || !v.Because(isolation.WhyRestored) {
				t.Errorf("%+v, %v", v, err)
			}
			if before != s.state() || time.Since(begun) > time.Minute {
				t.Errorf("the tree is another one, or it took %v", time.Since(begun))
			}
		})
	}
}
