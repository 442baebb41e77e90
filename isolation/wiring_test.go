// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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
