// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/runaway"
)

// These are attempts to get round the guards through what the package exports. Each must fail closed.

func TestBypassWithZeroValues(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, b := range map[string]*isolation.Boundary{"zero": {}, "nil": nil} {
		v, err := b.Try(ctx, isolation.Proposal{Edits: []allowlist.Edit{{Op: allowlist.Create, Path: "x"}}})
		if v != nil || !errors.Is(err, isolation.ErrClosed) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if err := b.Close(ctx); !errors.Is(err, isolation.ErrClosed) {
			t.Errorf("%s: Close: %v", name, err)
		}
		if st := b.Status(); st.Required != isolation.TierInvalid || st.Proven != 0 {
			t.Errorf("%s: %+v", name, st)
		}
	}
	if v := new(isolation.Verdict); v.Accepted || v.Stage != isolation.StageNone {
		t.Error("the zero verdict is no rejection")
	}
	spender := new(isolation.Spender)
	if err := spender.Spend(runaway.Usage{Tokens: 1}); !errors.Is(err, runaway.ErrLost) {
		t.Errorf("the zero spender: %v", err)
	}
	if seen, err := spender.Seen(runaway.Fingerprint{1}); !seen || !errors.Is(err, runaway.ErrLost) {
		t.Errorf("the zero spender: %v, %v", seen, err)
	}
	if err := spender.Check(ctx); !errors.Is(err, runaway.ErrLost) {
		t.Errorf("the zero spender: %v", err)
	}
}

// TestBypassWithIncompleteConfig: what is missing is named, all of it at once, and nothing is made.
func TestBypassWithIncompleteConfig(t *testing.T) {
	t.Parallel()
	_, err := isolation.Open(context.Background(), isolation.Config{})
	if !errors.Is(err, isolation.ErrConfig) {
		t.Fatalf("the zero Config: %v", err)
	}
	for _, field := range []string{"Governor", "Tree", "Edits", "Store", "Executors", "Run.Args", "Judge", "StateDir"} {
		contains(t, err, field)
	}
	for field, spoil := range map[string]func(c *isolation.Config, s *scene){
		"Governor":        func(c *isolation.Config, _ *scene) { c.Governor = nil },
		"Tree":            func(c *isolation.Config, _ *scene) { c.Tree = nil },
		"Edits":           func(c *isolation.Config, _ *scene) { c.Edits = nil },
		"Store":           func(c *isolation.Config, _ *scene) { c.Store = nil },
		"Executors":       func(c *isolation.Config, _ *scene) { c.Executors = nil },
		"Run.Args":        func(c *isolation.Config, _ *scene) { c.Run.Args = nil },
		"Judge":           func(c *isolation.Config, _ *scene) { c.Judge = judge(nil) },
		"StateDir":        func(c *isolation.Config, _ *scene) { c.StateDir = "" },
		"Run.ArtifactDir": func(c *isolation.Config, s *scene) { c.Run.ArtifactDir = s.home },
		"Run.Overlay":     func(c *isolation.Config, s *scene) { c.Run.Overlay = s.home },
		"Run.Label":       func(c *isolation.Config, _ *scene) { c.Run.Label = "mine" },
		"Run.Stdin":       func(c *isolation.Config, _ *scene) { c.Run.Stdin = os.Stdin },
		"Run.Workspace":   func(c *isolation.Config, s *scene) { c.Run.Workspace = s.home },
		"Run.Mounts": func(c *isolation.Config, s *scene) {
			c.Run.Mounts = []executor.Mount{{Source: s.home}}
		},
		"MinTier": func(c *isolation.Config, _ *scene) { c.MinTier = 99 },
		"RunID":   func(c *isolation.Config, _ *scene) { c.RunID = "another" },
		"-json":   func(c *isolation.Config, _ *scene) { c.Judge = isolation.GoTest{} },
		"x.xml":   func(c *isolation.Config, _ *scene) { c.Judge = isolation.JUnit{File: "x.xml"} },
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			if _, err := s.parts(); err != nil {
				t.Fatal(err)
			}
			c := s.config
			spoil(&c, s)
			b, err := isolation.OpenWith(context.Background(), c, s.hooks)
			if b != nil || !errors.Is(err, isolation.ErrConfig) {
				t.Fatalf("%v, %v", b, err)
			}
			contains(t, err, field)
			if len(s.fake.runs()) != 0 {
				t.Error("something ran")
			}
		})
	}
}

// TestBypassByPlacingTheGuardInTheTree: what guards the tree must not lie where variants write.
func TestBypassByPlacingTheGuardInTheTree(t *testing.T) {
	t.Parallel()
	t.Run("state", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		s.config.StateDir = filepath.Join(s.dir, "src", "state")
		refuses(t, s, "StateDir")
	})
	t.Run("state by a link", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		if err := os.Symlink(s.dir, filepath.Join(s.home, "link")); err != nil {
			t.Fatal(err)
		}
		s.config.StateDir = filepath.Join(s.home, "link", "src", "state")
		refuses(t, s, "StateDir")
	})
	t.Run("the tree in the state", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		s.config.StateDir = s.home
		refuses(t, s, "StateDir")
	})
	t.Run("ledger and kill file", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		s.ledger = filepath.Join(s.dir, "src", "ledger")
		refuses(t, s, "Governor")
	})
	t.Run("kill file", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		s.killFile = filepath.Join(s.dir, "src", "STOP")
		refuses(t, s, "Governor")
	})
	t.Run("policy file on the surface", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		path := filepath.Join(s.dir, "src", "policy.yaml")
		s.write("src/policy.yaml", "version: 1\nsurface:\n  - paths: [src/**]\n    ops: [modify, create]\ngate: []\n")
		s.config.Edits = must(allowlist.LoadFile(path))
		refuses(t, s, "policy file")
	})
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		s.store = filepath.Join(s.dir, "src", "store")
		b, _, err := s.tryOpen()
		if b != nil || !errors.Is(err, rollback.ErrTarget) {
			t.Errorf("%v, %v", b, err)
		}
	})
}

func refuses(t *testing.T, s *scene, text string) {
	t.Helper()
	b, _, err := s.tryOpen()
	if b != nil || !errors.Is(err, isolation.ErrConfig) {
		t.Fatalf("%v, %v", b, err)
	}
	contains(t, err, text)
}

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
