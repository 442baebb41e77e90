// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/runaway"
)

// Each test here is a claim that a guard made elsewhere while the code did something else. The name is the claim.

func TestClaimAllowlistBlocksEditsAtApplicationTime(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	var points []string
	s.hooks.At = func(point string) { points = append(points, point) }
	b, _ := s.open()
	points = nil
	before := s.state()
	v, err := b.Try(context.Background(), isolation.Proposal{Edits: []allowlist.Edit{
		s.modify("src/a.txt", "alpha\nallowed\n"), s.modify("gate/check.sh", "exit 0\n"),
	}})
	if err != nil || v.Accepted || !v.Because(isolation.WhyEditDenied) {
		t.Fatalf("%+v, %v", v, err)
	}
	if before != s.state() {
		t.Error("a byte of the tree was changed")
	}
	if slices.Contains(points, "checkpoint") || slices.Contains(points, "apply") || len(s.fake.runs()) != 0 {
		t.Errorf("it went on: %v, %d runs", points, len(s.fake.runs()))
	}
}

func TestClaimSandboxedRunnerIsDefaultOn(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	fail := false
	s.fake.run = func(_ context.Context, spec executor.Spec) (*executor.Result, error) {
		if fail {
			return nil, errAny
		}
		return ended(0), nil
	}
	b, _ := s.open()
	for n := range 3 {
		if _, err := b.Try(context.Background(), s.good(fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
		if runs := s.fake.runs(); len(runs) != n+1 {
			t.Fatalf("%d runs after %d steps", len(runs), n+1)
		}
	}
	needs := isolation.TierGuarded.Needs()
	for _, spec := range s.fake.runs() {
		if !spec.Require.Has(needs) || spec.Workspace != s.dir || spec.Overlay == "" ||
			!slices.Contains(spec.ReadOnly, "gate/check.sh") {
			t.Errorf("it ran with %+v", spec)
		}
	}
	fail = true
	if v, err := b.Try(context.Background(), s.good("x")); err != nil || v.Accepted {
		t.Errorf("an error of the executor was accepted: %+v, %v", v, err)
	}
}

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

// TestClaimFailingTestsAreRejected: results that are not what the judge knows.
func TestClaimFailingTestsAreRejected(t *testing.T) {
	t.Parallel()
	const begin = `{"Action":"start","Package":"p"}` + "\n" + `{"Action":"run","Package":"p","Test":"TestA"}` + "\n"
	for name, c := range map[string]struct {
		stdout string
		code   int
		want   isolation.Why
	}{
		"one fails": {begin + `{"Action":"fail","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p"}`, 1,
			isolation.WhyRejected},
		"one fails, exit 0": {begin + `{"Action":"fail","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"pass","Package":"p"}`, 0,
			isolation.WhyRejected},
		"empty":         {"", 0, isolation.WhyNoResult},
		"malformed":     {"{not json", 0, isolation.WhyNoResult},
		"upper case":    {begin + `{"Action":"PASS","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"PASS","Package":"p"}`, 0, 0},
		"field renamed": {`{"status":"failed","tests_failed":2}`, 0, 0},
		"no end":        {begin, 0, 0},
		"zero tests":    {`{"Action":"start","Package":"p"}` + "\n" + `{"Action":"pass","Package":"p"}`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.config.Judge = isolation.GoTest{MinTests: 1}
			s.config.Run.Args = []string{"go", "test", "-json", "./..."}
			passing := begin + `{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}` + "\n" + `{"Action":"pass","Package":"p","Elapsed":0}` + "\n"
			first := true
			s.fake.run = func(_ context.Context, spec executor.Spec) (*executor.Result, error) {
				text, code := c.stdout, c.code
				if first {
					text, code, first = passing, 0, false
				}
				r := ended(code)
				r.Stdout = executor.Output{Head: []byte(text), Total: int64(len(text))}
				_, err := spec.Stdout.Write([]byte(text))
				return r, err
			}
			b, _ := s.open()
			before := s.state()
			v, err := b.Try(context.Background(), s.good("1"))
			if err != nil || v.Accepted || before != s.state() {
				t.Fatalf("kept: %+v, %v", v, err)
			}
			if c.want != 0 && !v.Because(c.want) {
				t.Errorf("the reasons are %v, want %v", v.Reasons, c.want)
			}
			if !v.Because(isolation.WhyNoResult) && !v.Because(isolation.WhyRejected) {
				t.Errorf("the reasons are %v", v.Reasons)
			}
		})
	}
}

// TestClaimResultComesFromTheTests: a program that ends with 0 before a test has run.
func TestClaimResultComesFromTheTests(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.config.Judge = isolation.GoTest{MinTests: 1}
	s.config.Run.Args = []string{"go", "test", "-json", "./..."}
	n := 0
	s.fake.run = func(_ context.Context, spec executor.Spec) (*executor.Result, error) {
		text := ""
		if n++; n == 1 {
			text = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"pass","Package":"p","Elapsed":0}
`
		}
		r := ended(0)
		r.Stdout = executor.Output{Head: []byte(text), Total: int64(len(text))}
		_, err := spec.Stdout.Write([]byte(text))
		return r, err
	}
	b, _ := s.open()
	v, err := b.Try(context.Background(), s.good("1"))
	if err != nil || !v.Because(isolation.WhyNoResult) {
		t.Errorf("exit 0 without a report: %+v, %v", v, err)
	}
}

func TestClaimRegressionTriggersRollback(t *testing.T) {
	t.Parallel()
	for name, ruling := range map[string]judge{
		"error": func(context.Context, isolation.Evaluation) (isolation.Ruling, error) { return isolation.Keep, errAny },
		"panic": func(context.Context, isolation.Evaluation) (isolation.Ruling, error) { panic("no such metric") },
		"regression": func(context.Context, isolation.Evaluation) (isolation.Ruling, error) {
			return isolation.Reject, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.config.Judge = ruling
			b, _ := s.open()
			before := s.state()
			v, err := b.Try(context.Background(), s.good("1"))
			if err != nil || v.Accepted || !v.Because(isolation.WhyRestored) || before != s.state() {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

// TestClaimRollbackRestoresTheCode: what a rejected variant made is gone, and what it deleted is back.
func TestClaimRollbackRestoresTheCode(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	before, id := s.state(), b.Status().Checkpoint
	v, err := b.Try(context.Background(), isolation.Proposal{Edits: []allowlist.Edit{
		s.modify("src/a.txt", "omega\n"),
		{Op: allowlist.Create, Path: "src/new/dir/x.txt", Content: []byte("new\n")},
		{Op: allowlist.Delete, Path: "src/deep/c.txt", Base: allowlist.Sum([]byte(files["src/deep/c.txt"]))},
	}})
	if err != nil || v.Accepted {
		t.Fatalf("%+v, %v", v, err)
	}
	if diff := cmp.Diff(before, s.state()); diff != "" {
		t.Errorf("the tree is another one:\n%s", diff)
	}
	closed := b.Close(context.Background())
	_ = s.config.Tree.Close()
	d, err := s.config.Store.Digest(context.Background(), s.dir)
	c, getErr := s.config.Store.Get(context.Background(), id)
	if closed != nil || err != nil || getErr != nil || d != c.Digest || v.Checkpoint != id {
		t.Errorf("the digest is %x, that of the checkpoint %x; %v %v %v", d, c.Digest, closed, err, getErr)
	}
}

func TestClaimCheckpointBeforeEveryEdit(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	type moment struct{ changed, kept bool }
	seen := map[string]moment{}
	var before string
	s.hooks.At = func(point string) {
		if before == "" {
			return
		}
		kept := false
		for c, err := range s.config.Store.All(context.Background()) {
			if err != nil {
				t.Error(err)
			}
			kept = kept || c.Pinned != "" && c.Files == len(files)
		}
		seen[point] = moment{s.state() != before, kept}
	}
	b, _ := s.open()
	before = s.state()
	if v, err := b.Try(context.Background(), s.good("1")); err != nil || !v.Accepted {
		t.Fatalf("%+v, %v", v, err)
	}
	for _, point := range []string{"begin", "propose", "plan", "checkpoint", "apply", "applying"} {
		if m := seen[point]; m.changed || !m.kept {
			t.Errorf("at %q the tree is changed: %v, and the checkpoint there: %v", point, m.changed, m.kept)
		}
	}
	if !seen["seal"].changed {
		t.Error("nothing was written before the seal")
	}
	phases := s.phases()
	if diff := cmp.Diff([]string{"baseline", "applying", "sealed", "running", "verified", "kept"}, phases); diff != "" {
		t.Errorf("the phases were recorded otherwise:\n%s", diff)
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

func TestClaimTriggersAreAnExplicitContract(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.fake.caps = isolation.TierConfined.Needs()
	_, closeAll := s.open()
	closeAll()
	s.config.Sources.Generator = isolation.GeneratorIdentity{Endpoint: "http://127.0.0.1:11434", Provider: "ollama", Model: "x"}
	_, _, err := s.tryOpen()
	var denied *isolation.DenyError
	if !errors.As(err, &denied) || denied.Required != isolation.TierContainer {
		t.Fatalf("a local endpoint instead of the provider: %v", err)
	}
	if n := len(s.fake.runs()); n != 0 {
		t.Errorf("%d runs", n)
	}
}

// changing is a generator that becomes another one.
type changing struct {
	generator
	who isolation.GeneratorIdentity
}

func (c *changing) Identity() isolation.GeneratorIdentity { return c.who }

func TestClaimTriggersAreAnExplicitContractWithinOneSession(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.fake.caps = isolation.TierConfined.Needs()
	b, _ := s.open()
	g := &changing{who: s.config.Sources.Generator}
	g.generator = func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) { return s.good("1").Edits, nil }
	if v, err := b.Try(context.Background(), isolation.Proposal{Generate: g}); err != nil || !v.Accepted {
		t.Fatalf("%+v, %v", v, err)
	}
	g.who.Endpoint = "http://localhost:8000/v1"
	v, err := b.Try(context.Background(), isolation.Proposal{Generate: g})
	if !errors.Is(err, isolation.ErrDenied) || v.Accepted || v.Stage != isolation.StageBegin {
		t.Errorf("%+v, %v", v, err)
	}
	if stop := b.Status().Governor.Stop; stop == nil || stop.Reason != runaway.ReasonIsolation {
		t.Errorf("the run has not stopped: %v", stop)
	}
	if len(s.fake.runs()) != 1 {
		t.Error("it ran all the same")
	}
}

func TestClaimTier2IsTheDefaultPath(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.config.Trust.Secrets = isolation.HighValue
	s.fake.caps = isolation.TierConfined.Needs()
	missing := &executor.UnsupportedError{Executor: "containerd", Reason: "no socket", Fix: "install it"}
	s.config.Executors = append([]isolation.Candidate{{Name: "containerd", Err: missing}}, s.config.Executors...)
	_, _, err := s.tryOpen()
	var denied *isolation.DenyError
	if !errors.As(err, &denied) || denied.Required != isolation.TierContainer || !errors.Is(err, missing) {
		t.Fatalf("%v", err)
	}
	for _, text := range []string{"containerd", "install it", "fake", "MinimalRoot"} {
		if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(text)) {
			t.Errorf("the error does not name %q: %v", text, err)
		}
	}
	if n := len(s.fake.runs()); n != 0 {
		t.Errorf("the lower tier ran %d times", n)
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
