// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

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
	if _, err := isolation.Verify(t.Context(), ex, patient(executor.AllCapabilities+1)); err == nil || ran {
		t.Errorf("ran %v: what nobody has defined is proven", ran)
	}
	if text := refused.Error(); !strings.Contains(text, "NetworkOff") || !strings.Contains(text, refused.Fix) {
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
