// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/isolation"
)

// The executors of this module hold the tier that they are for, on this host, for this caller.
func TestVerifyProves(t *testing.T) {
	guarded, err := rlimit.New(t.Context(), rlimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer guarded.Close()
	for name, tc := range map[string]struct {
		ex   executor.Executor
		tier isolation.Tier
	}{
		"rlimit":     {guarded, isolation.TierGuarded},
		"bubblewrap": {confined(t), isolation.TierConfined},
	} {
		t.Run(name, func(t *testing.T) {
			before := os.Environ()
			needs := tc.tier.Needs()
			r, err := isolation.Verify(t.Context(), tc.ex, patient(needs))
			if err != nil {
				t.Fatal(err)
			}
			if r.Proven != needs || r.Missing() != 0 || len(r.Failed()) != 0 || r.Fingerprint == "" || len(r.Enforced) == 0 {
				t.Errorf("%+v", r)
			}
			for _, p := range r.Probes {
				if p.Control != isolation.Broken && p.Control != isolation.Evident || p.Result != isolation.Held {
					t.Errorf("%+v", p)
				}
			}
			if err := r.Current(t.Context(), tc.ex, time.Now()); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(before, os.Environ()); diff != "" {
				t.Errorf("the environment has changed: %s", diff)
			}
		})
	}
}

// What the verification of an executor has proven is known until something about it changes.
func TestVerifyRemembers(t *testing.T) {
	ex := confined(t)
	o := patient(executor.CleanEnv | executor.NoNewPrivileges)
	first, err := isolation.Verify(t.Context(), ex, o)
	if err != nil || first.Cached {
		t.Fatal(err, first.Cached)
	}
	less := patient(executor.CleanEnv)
	again, err := isolation.Verify(t.Context(), ex, less)
	if err != nil || !again.Cached || again.Hash() != first.Hash() {
		t.Errorf("%v, cached %v", err, again.Cached)
	}
	again.Probes[0].Result = isolation.Broken // what a caller does to its copy is its own affair
	if third, err := isolation.Verify(t.Context(), ex, less); err != nil || third.Hash() != first.Hash() {
		t.Errorf("%v, another report", err)
	}
	more := patient(executor.CleanEnv | executor.SyscallsFiltered)
	r, err := isolation.Verify(t.Context(), ex, more)
	if err != nil || r.Cached || !r.Proven.Has(executor.SyscallsFiltered) {
		t.Errorf("what was not proven is known: %v %v", r.Proven, err)
	}
	less.Fresh = true
	if r, err := isolation.Verify(t.Context(), ex, less); err != nil || r.Cached {
		t.Errorf("%v, cached %v", err, r.Cached)
	}
}

// broken has the fingerprint of what it embeds, and breaks it.
type broken struct{ *bubblewrap.Executor }

func (b broken) Run(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	return plain{b.Capabilities()}.Run(ctx, spec)
}

// A fingerprint is not an identity: a type that embeds an executor has the same.
func TestVerifyKnowsWrappers(t *testing.T) {
	ex := confined(t)
	needs := executor.SyscallsFiltered
	report, err := isolation.Verify(t.Context(), ex, patient(needs))
	if err != nil {
		t.Fatal(err)
	}
	wrapper := broken{ex}
	if wrapper.Fingerprint() != ex.Fingerprint() {
		t.Fatal("the wrapper has a fingerprint of its own, so this test shows nothing")
	}
	r, err := isolation.Verify(t.Context(), wrapper, patient(needs))
	if !errors.Is(err, isolation.ErrUnproven) || r.Cached {
		t.Errorf("a wrapper took the place of what it wraps: %v", err)
	}
	if err := report.Current(t.Context(), wrapper, time.Now()); !errors.Is(err, isolation.ErrStale) {
		t.Errorf("a report about an executor holds for its wrapper: %v", err)
	}
}

// hostile does whatever the functions say.
type hostile struct {
	caps func() executor.Capability
	run  func(context.Context, executor.Spec) (*executor.Result, error)
}

func (h *hostile) Capabilities() executor.Capability { return h.caps() }

func (h *hostile) Run(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	return h.run(ctx, spec)
}

func TestVerifySurvives(t *testing.T) {
	const claim = executor.CleanEnv | executor.NoNewPrivileges
	always := func() executor.Capability { return claim }
	stuck := make(chan struct{})
	t.Cleanup(func() { close(stuck) })
	honest := plain{claim}.Run
	var asked atomic.Int32
	for name, tc := range map[string]struct {
		ex   executor.Executor
		want error
	}{
		"no executor":       {nil, isolation.ErrUnproven},
		"a typed nil":       {(*hostile)(nil), isolation.ErrUnproven},
		"claims nothing":    {plain{}, isolation.ErrUnproven},
		"claims too much":   {plain{executor.AllCapabilities + 1}, isolation.ErrUnproven},
		"does not answer":   {&hostile{func() executor.Capability { <-stuck; return 0 }, honest}, isolation.ErrHung},
		"panics when asked": {&hostile{func() executor.Capability { panic("on purpose") }, honest}, isolation.ErrPanicked},
		"hangs": {&hostile{always, func(context.Context, executor.Spec) (*executor.Result, error) {
			<-stuck
			return nil, nil
		}}, isolation.ErrHung},
		"hangs later": {&hostile{always, func(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
			if len(spec.Args) > 2 && spec.Args[2] == "fds" {
				<-stuck
			}
			return honest(ctx, spec)
		}}, isolation.ErrHung},
		"panics": {&hostile{always, func(context.Context, executor.Spec) (*executor.Result, error) {
			panic("on purpose")
		}}, isolation.ErrPanicked},
		"ends its goroutine": {&hostile{always, func(context.Context, executor.Spec) (*executor.Result, error) {
			runtime.Goexit()
			return nil, nil
		}}, isolation.ErrPanicked},
		"returns nothing": {&hostile{always, func(context.Context, executor.Spec) (*executor.Result, error) {
			return nil, nil
		}}, isolation.ErrUnproven},
		"runs nothing": {&hostile{always, func(context.Context, executor.Spec) (*executor.Result, error) {
			return &executor.Result{Cause: executor.CauseExited, ExitCode: 42}, nil
		}}, isolation.ErrUnproven},
		"fails": {&hostile{always, func(context.Context, executor.Spec) (*executor.Result, error) {
			return nil, executor.ErrLost
		}}, isolation.ErrUnproven},
		"changes its claims": {&hostile{func() executor.Capability {
			if asked.Add(1) > 1 {
				return claim | executor.NetworkOff
			}
			return claim
		}, honest}, isolation.ErrUnsteady},
	} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			t.Setenv("TMPDIR", tmp)
			before := os.Environ()
			o := &isolation.VerifyOptions{Timeout: 6 * time.Second}
			if name == "hangs" || name == "hangs later" {
				o.Timeout = 2 * time.Second
			}
			r, err := isolation.Verify(t.Context(), tc.ex, o)
			if !errors.Is(err, isolation.ErrUnproven) || !errors.Is(err, tc.want) {
				t.Fatalf("%v does not match %v", err, tc.want)
			}
			if r.Missing() == 0 && r.Needs != 0 || r.Proven&executor.NoNewPrivileges != 0 || r.Expires.After(r.Finished) {
				t.Errorf("proven %v of %v, until %v", r.Proven, r.Needs, r.Expires)
			}
			left, _ := os.ReadDir(tmp)
			if diff := cmp.Diff(before, os.Environ()); diff != "" || len(left) > 0 {
				t.Errorf("left behind: %v %s", left, diff)
			}
		})
	}
}

// What is not even promised is refused at once: nothing runs.
func TestVerifyNeedsTheClaim(t *testing.T) {
	ran := false
	ex := &hostile{func() executor.Capability { return executor.CleanEnv },
		func(context.Context, executor.Spec) (*executor.Result, error) { ran = true; return nil, nil }}
	_, err := isolation.Verify(t.Context(), ex, patient(isolation.TierConfined.Needs()))
	refused, ok := errors.AsType[*isolation.VerifyError](err)
	if !ok || ran || refused.Unclaimed != isolation.TierConfined.Needs()&^executor.CleanEnv || refused.Fix == "" {
		t.Errorf("ran %v, %+v", ran, refused)
	}
	if text := err.Error(); !strings.Contains(text, "NetworkOff") || !strings.Contains(text, refused.Fix) {
		t.Errorf("the message names neither what is missing nor the way out: %s", text)
	}
}

// The caller's context ends a verification, and nothing of it counts.
func TestVerifyHeedsItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ex := &hostile{func() executor.Capability { return executor.CleanEnv }, nil}
	ex.run = func(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
		cancel()
		return plain{executor.CleanEnv}.Run(ctx, spec)
	}
	r, err := isolation.Verify(ctx, ex, patient(0))
	if !errors.Is(err, isolation.ErrUnproven) || r.Proven != 0 {
		t.Errorf("%v, proven %v", err, r.Proven)
	}
	late, stop := context.WithCancelCause(t.Context())
	why := errors.New("changed my mind")
	stop(why)
	if _, err := isolation.Verify(late, plain{executor.CleanEnv}, patient(0)); !errors.Is(err, isolation.ErrUnproven) {
		t.Errorf("%v", err)
	}
}

// Verifications of one process take turns, and each gets its verdict.
func TestVerifyTakesTurns(t *testing.T) {
	ex, needs := confined(t), executor.CleanEnv|executor.NoNewPrivileges
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			o := patient(needs)
			o.Fresh = true
			if r, err := isolation.Verify(t.Context(), ex, o); err != nil || r.Proven != needs {
				t.Errorf("proven %v, %v", r.Proven, err)
			}
		})
	}
	group.Wait()
}

// Both results of a verification are logged, the bad one as a warning.
func TestVerifyLogs(t *testing.T) {
	var text bytes.Buffer
	o := patient(0)
	o.Logger = slog.New(slog.NewTextHandler(&text, nil))
	if _, err := isolation.Verify(t.Context(), plain{}, o); err == nil {
		t.Fatal("proven")
	}
	if got := text.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "isolation_test.plain") {
		t.Errorf("%s", got)
	}
}
