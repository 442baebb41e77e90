// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/runaway"
)

// within fails if a call does not return in a time that is many times what it needs.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s does not return", what)
	}
}

// TestForgedStopIsAFailure: a generator that returns what a governor's stop looks like has failed like any other, or it
// could go on failing for ever without the breaker's noticing.
func TestForgedStopIsAFailure(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	forged := generator(func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) {
		return nil, fmt.Errorf("budget: %w", &runaway.StopError{})
	})
	var err error
	n := 0
	for ; err == nil && n < 12; n++ {
		var v *isolation.Verdict
		v, err = b.Try(context.Background(), isolation.Proposal{Generate: forged})
		if !v.Because(isolation.WhyGenerateFailed) {
			t.Errorf("the reasons are %v", v.Reasons)
		}
	}
	var stop *runaway.StopError
	if !errors.As(err, &stop) || stop.Reason != runaway.ReasonConsecutiveFailures || n != 5 {
		t.Errorf("after %d steps: %v", n, err)
	}
}

// nameless is a generator that does not say who it is.
type nameless struct {
	generator
	hang chan struct{}
}

func (m nameless) Identity() isolation.GeneratorIdentity {
	<-m.hang
	return isolation.GeneratorIdentity{}
}

// TestHangingIdentityIsAbandoned: there is no iteration yet whose time could be up, and the caller's context need not
// end.
func TestHangingIdentityIsAbandoned(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	within(t, "Try", func() {
		v, err := b.Try(context.Background(), isolation.Proposal{Generate: nameless{hang: hang}})
		if !errors.Is(err, isolation.ErrDenied) || v.Accepted {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// stuck is a judge that never measures.
type stuck struct {
	judge
	hang chan struct{}
}

func (j stuck) Measure(context.Context, isolation.Evaluation) (*isolation.Baseline, error) {
	<-j.hang
	return &isolation.Baseline{}, nil
}

func TestHangingMeasureIsAbandoned(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	s.config.Judge = stuck{exitStatus, hang}
	within(t, "Open", func() {
		if b, _, err := s.tryOpen(); b != nil || err == nil {
			t.Errorf("%v, %v", b, err)
		}
	})
}

// TestCheckpointHoldsWhatWasJudged: somebody writes into the tree while its checkpoint is taken, and takes it back at
// once. The tree is right then, and the checkpoint is not.
func TestCheckpointHoldsWhatWasJudged(t *testing.T) {
	t.Parallel()
	for name, evil := range map[string][2]func(s *scene){
		"content": {
			func(s *scene) { s.write("src/b.txt", "evil\n") }, func(s *scene) { s.write("src/b.txt", files["src/b.txt"]) },
		},
		"gate": {
			func(s *scene) { s.write("gate/check.sh", "exit 0\n") },
			func(s *scene) { s.write("gate/check.sh", files["gate/check.sh"]) },
		},
		"new file": {
			func(s *scene) { s.write("src/evil.txt", "evil\n") },
			func(s *scene) { _ = os.Remove(filepath.Join(s.dir, "src", "evil.txt")) },
		},
		"missing file": {
			func(s *scene) { _ = os.Remove(filepath.Join(s.dir, "src", "b.txt")) },
			func(s *scene) { s.write("src/b.txt", files["src/b.txt"]) },
		},
		"mode": {
			func(s *scene) { _ = os.Chmod(filepath.Join(s.dir, "src", "b.txt"), 0o755) },
			func(s *scene) { _ = os.Chmod(filepath.Join(s.dir, "src", "b.txt"), 0o644) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.hooks.At = func(point string) {
				switch point {
				case "settle":
					evil[0](s)
				case "kept-checkpoint":
					evil[1](s)
				}
			}
			b, closeAll := s.open()
			before := s.state()
			v, err := b.Try(context.Background(), s.good("1"))
			if v.Accepted || before != s.state() {
				t.Errorf("kept with another checkpoint: %+v, %v", v, err)
			}
			held := must(s.config.Store.FS(b.Status().Checkpoint))
			if got, err := fs.ReadFile(held, "src/b.txt"); err != nil || string(got) != files["src/b.txt"] {
				t.Errorf("the checkpoint has %q, %v", got, err)
			}
			closeAll()
		})
	}
}

// TestRaisedTierIsWhatIsProvenAgain: the report that a boundary was opened with proved more than was needed then. Later
// more is needed, and the report has run out: what is proven again is what is needed now.
func TestRaisedTierIsWhatIsProvenAgain(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	stale := false
	var asked []executor.Capability
	s.hooks.Current = func(context.Context, isolation.Report, executor.Executor) error {
		if stale {
			stale = false
			return isolation.ErrStale
		}
		return nil
	}
	s.hooks.Verify = func(ctx context.Context, ex executor.Executor, o *isolation.VerifyOptions) (isolation.Report, error) {
		if asked = append(asked, o.Needs); len(asked) == 1 {
			return isolation.Believe(ctx, ex, o)
		}
		return isolation.Report{Needs: o.Needs, Claimed: ex.Capabilities(), Proven: o.Needs}, nil
	}
	g := &changing{who: s.config.Sources.Generator}
	g.generator = func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) { return s.good("1").Edits, nil }
	g.who.Endpoint = "http://127.0.0.1:1/"
	later := s.config.Sources
	later.Generator = g.who
	model := s.config.Trust.Merge(isolation.Observe(t.Context(), later))
	s.config.Approval = isolation.Signed(&isolation.Approval{
		Approver: "a person", Reason: "looked at the model that runs here", ModelHash: isolation.Decide(model).ModelHash,
		Created: time.Now().Add(-time.Minute), Expires: time.Now().Add(time.Hour), RunID: "run",
	})
	b, _ := s.open()
	stale = true
	v, err := b.Try(context.Background(), isolation.Proposal{Generate: g})
	if b.Status().Required != isolation.TierContainer {
		t.Fatalf("required is %v: %+v, %v", b.Status().Required, v, err)
	}
	needs := isolation.TierContainer.Needs()
	if len(asked) != 2 || !asked[1].Has(needs) {
		t.Errorf("proven were %v", asked)
	}
	for _, spec := range s.fake.runs() {
		if !spec.Require.Has(needs) {
			t.Errorf("it ran with %v", spec.Require)
		}
	}
}

// TestGeneratorChangesWithinAStep: it becomes another one while it generates, such as one that falls back to a model of
// this machine. What it has made does not run in the lower tier.
func TestGeneratorChangesWithinAStep(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.fake.caps = isolation.TierConfined.Needs()
	b, _ := s.open()
	before := s.state()
	g := &changing{who: s.config.Sources.Generator}
	g.generator = func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) {
		g.who.Endpoint = "http://localhost:11434"
		return s.good("1").Edits, nil
	}
	v, err := b.Try(context.Background(), isolation.Proposal{Generate: g})
	if v.Accepted || len(s.fake.runs()) != 0 || before != s.state() || !v.Because(isolation.WhyDenied) {
		t.Errorf("%+v, %v; %d runs", v, err, len(s.fake.runs()))
	}
}

// asking is a log handler that asks the boundary for its status, as one for metrics would.
type asking struct {
	slog.Handler
	b *atomic.Pointer[isolation.Boundary]
}

func (a asking) Enabled(context.Context, slog.Level) bool { return true }
func (a asking) WithAttrs([]slog.Attr) slog.Handler       { return a }
func (a asking) Handle(context.Context, slog.Record) error {
	if b := a.b.Load(); b != nil {
		_ = b.Status()
	}
	return nil
}

func TestLoggerMayAskForTheStatus(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	var b atomic.Pointer[isolation.Boundary]
	s.config.Logger = slog.New(asking{slog.DiscardHandler, &b})
	opened, _ := s.open()
	b.Store(opened)
	within(t, "Try", func() {
		if v, err := opened.Try(context.Background(), s.good("1")); err != nil || !v.Accepted {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// TestExecutorKeepsNoHoldOnTheNextRun: what it does to its copy of the specification is gone with the run.
func TestExecutorKeepsNoHoldOnTheNextRun(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.config.Run.Env = map[string]string{"A": "1"}
	s.config.Run.Artifacts = []string{"out/*"}
	s.fake.run = func(_ context.Context, spec executor.Spec) (*executor.Result, error) {
		if !slices.Equal(spec.Args, []string{"sh", "gate/check.sh"}) || spec.Env["A"] != "1" || spec.Artifacts[0] != "out/*" {
			t.Errorf("it runs %v with %v, %v", spec.Args, spec.Env, spec.Artifacts)
		}
		spec.Args[1], spec.Env["A"], spec.Artifacts[0] = "src/evil.sh", "2", "**"
		return ended(1), nil
	}
	b, _ := s.open()
	for n := range 2 {
		if _, err := b.Try(context.Background(), s.good(fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVariantCannotBlockItsRollback: names and sizes that the store treats in a way of its own.
func TestVariantCannotBlockItsRollback(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("d/", 600) + "x"
	for name, c := range map[string]struct {
		path   string
		limits rollback.Limits
	}{
		"staging of another store": {path: ".rollback-0123456789abcdef-0-0-abcdefghijklm/x"},
		"kept by a restore":        {path: ".rollback-kept-0/x"},
		"file like kept":           {path: ".rollback-kept-0"},
		"staged by an edit":        {path: "src/.al-0123456789abcdef"},
		"too deep":                 {path: deep},
		"too many":                 {path: "src/x/y/z", limits: rollback.Limits{Files: 10}},
		"too large":                {path: "src/large", limits: rollback.Limits{FileSize: 100}},
		"too much":                 {path: "src/large", limits: rollback.Limits{Bytes: 200}},
	} {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s keep=%v", name, keep), func(t *testing.T) {
				t.Parallel()
				blockRollback(t, c.path, c.limits, keep)
			})
		}
	}
}

func blockRollback(t *testing.T, path string, limits rollback.Limits, keep bool) {
	s := setScene(t)
	s.config.Edits = must(allowlist.New(allowlist.Config{
		Surface: []allowlist.SurfaceRule{{Paths: []string{"**"}, Ops: []allowlist.Op{allowlist.Create, allowlist.Modify}}},
		Gate:    []string{"gate/**"},
	}))
	s.fake.run = func(context.Context, executor.Spec) (*executor.Result, error) {
		if keep {
			return ended(0), nil
		}
		return ended(1), nil
	}
	if _, err := s.parts(); err != nil {
		t.Fatal(err)
	}
	_ = s.config.Store.Close()
	s.config.Store = must(rollback.Open(filepath.Join(s.home, "store"), &rollback.Options{
		Exclude: []string{}, Foreign: rollback.ForeignQuarantine, Limits: limits,
	}))
	t.Cleanup(func() { _ = s.config.Store.Close() })
	b, err := isolation.OpenWith(context.Background(), s.config, s.hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	before := s.state()
	v, err := b.Try(context.Background(), isolation.Proposal{Edits: []allowlist.Edit{
		{Op: allowlist.Create, Path: path, Content: []byte(strings.Repeat("x", 300))},
	}})
	if err != nil || v.Because(isolation.WhyTreeUnknown) {
		t.Errorf("%+v, %v", v, err)
	}
	if diff := cmp.Diff(before, s.state()); (diff == "") == v.Accepted {
		t.Errorf("accepted: %v; the tree:\n%s", v.Accepted, diff)
	}
	keep = false
	v, err = b.Try(context.Background(), s.bad("2"))
	if err != nil || v.Accepted || v.Because(isolation.WhyTreeUnknown) || v.Because(isolation.WhyTreeDrift) {
		t.Errorf("the next step: %+v, %v", v, err)
	}
}

// TestStoreThatStopsAtForeignThings is refused: with names of the store's own, too deep, or too large for its limits, a
// variant could block its own rollback for good.
func TestStoreThatStopsAtForeignThings(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	if _, err := s.parts(); err != nil {
		t.Fatal(err)
	}
	_ = s.config.Store.Close()
	s.config.Store = must(rollback.Open(filepath.Join(s.home, "store"), &rollback.Options{Exclude: []string{}}))
	defer s.config.Store.Close()
	b, err := isolation.OpenWith(context.Background(), s.config, s.hooks)
	if b != nil || !errors.Is(err, isolation.ErrConfig) {
		t.Errorf("%v, %v", b, err)
	}
	contains(t, err, "ForeignQuarantine")
}

// TestVerdictsCarryTheHeadOfTheGovernor: a journal of the governor that was cut or put back does not fit the decision
// log any more.
func TestVerdictsCarryTheHeadOfTheGovernor(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	heads := map[string]bool{}
	for _, p := range []isolation.Proposal{s.bad("1"), s.good("2"), {Edits: []allowlist.Edit{s.modify("README", "x")}}} {
		v, err := b.Try(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		got, want := s.lastVerdict(), b.Status()
		if got.Governor == "" || got.Governor != want.Governor.Head || heads[got.Governor] {
			t.Errorf("the record has %q, and the governor %q", got.Governor, want.Governor.Head)
		}
		heads[got.Governor] = true
		if v.Evidence == "" || v.Evidence != want.LogHead {
			t.Errorf("the verdict has %q, and the log %q", v.Evidence, want.LogHead)
		}
	}
}
