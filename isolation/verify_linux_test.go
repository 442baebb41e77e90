// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/isolation"
)

var fullVerify = flag.Bool("verify.full", false, "prove the executors of this module with every attack: a minute each")

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
			o := patient(needs)
			if *fullVerify {
				o.Full, o.Timeout = true, 10*time.Minute
			}
			r, err := isolation.Verify(t.Context(), tc.ex, o)
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
