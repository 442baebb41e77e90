// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/runaway"
)

// scene is a run with everything that a boundary is made of, in directories of its own.
type scene struct {
	t                       testing.TB
	home                    string // of everything
	dir                     string // the tree
	config                  isolation.Config
	hooks                   isolation.Hooks
	limits                  runaway.Limits
	metered                 runaway.Meter
	ledger, store, killFile string // where they lie; "": beside the tree
	fake                    *fakeExecutor
}

// files are what the tree holds in the beginning.
var files = map[string]string{
	"src/a.txt": "alpha\n", "src/b.txt": "beta\n", "src/deep/c.txt": "gamma\n", "README": "hello\n",
	"gate/check.sh": "#!/bin/sh\ngrep -q alpha src/a.txt\n",
}

// setScene makes the directories; open opens what lies in them, as often as a test likes.
func setScene(t testing.TB) *scene {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := sceneIn(t, home)
	for name, content := range files {
		s.write(name, content)
	}
	// A host on which nobody else works.
	for name, content := range map[string]string{"self/cgroup": "0::/\n", "1/status": "Name:\tinit\nUid:\t0\t0\t0\t0\n"} {
		path := filepath.Join(home, "proc", filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// sceneIn is a scene whose directories are there.
func sceneIn(t testing.TB, home string) *scene {
	s := &scene{t: t, home: home, dir: filepath.Join(home, "tree"), fake: &fakeExecutor{caps: executor.AllCapabilities}}
	s.hooks = isolation.Hooks{Verify: isolation.Believe, Current: isolation.StillValid, Grace: 100 * time.Millisecond}
	s.config = isolation.Config{
		Trust:   trusted(),
		Sources: sources(home),
		Edits: must(allowlist.New(allowlist.Config{
			Surface: []allowlist.SurfaceRule{{Paths: []string{"src/**"},
				Ops: []allowlist.Op{allowlist.Create, allowlist.Modify, allowlist.Delete}}},
			Gate: []string{"gate/**"},
		})),
		Executors: []isolation.Candidate{{Name: "fake", Executor: s.fake}},
		Run:       executor.Spec{Args: []string{"sh", "gate/check.sh"}},
		Judge:     judge(exitStatus),
		StateDir:  filepath.Join(home, "state"),
	}
	return s
}

// trusted is the mildest model there is.
func trusted() isolation.TrustModel {
	return isolation.TrustModel{
		Generator: isolation.TrustedProvider, Host: isolation.SingleOperator, ExternalSideEffects: isolation.No,
		UntrustedInput: isolation.No, Secrets: isolation.NoSecrets, Unattended: isolation.No,
		DeclaredBy: "the test", DeclaredAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// sources are those of a host on which nothing speaks against the model.
func sources(home string) isolation.Sources {
	return isolation.Sources{
		Generator: isolation.GeneratorIdentity{Endpoint: "https://api.anthropic.com/v1", Provider: "provider", Model: "large-1"},
		OwnModels: []string{"mine-1"}, EnvNames: []string{"PATH"}, Files: []string{filepath.Join(home, "no-credentials")},
		Sockets: []string{filepath.Join(home, "no-socket")}, Proc: filepath.Join(home, "proc"),
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (s *scene) write(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		s.t.Fatal(err)
	}
}

// parts opens governor, tree and store, and closes them with the test, or earlier with the function.
func (s *scene) parts() (func(), error) {
	s.t.Helper()
	ctx := context.Background()
	c := &s.config
	var err error
	if c.Tree, err = allowlist.OpenTree(s.dir, nil); err != nil {
		s.t.Fatal(err)
	}
	c.Store, err = rollback.Open(cmp.Or(s.store, filepath.Join(s.home, "store")), &rollback.Options{
		Exclude: []string{}, Foreign: rollback.ForeignQuarantine,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	c.Governor, err = runaway.Open(ctx, "run", s.limits, must(runaway.FileStore(cmp.Or(s.ledger, filepath.Join(s.home, "ledger")))),
		&runaway.Options{Metered: s.metered, KillFile: s.killFile})
	if err != nil {
		return nil, errors.Join(err, c.Tree.Close(), c.Store.Close())
	}
	closeAll := sync.OnceFunc(func() {
		_ = c.Tree.Close()
		_ = c.Store.Close()
		_ = c.Governor.Close(ctx)
	})
	s.t.Cleanup(closeAll)
	return closeAll, nil
}

// open opens the boundary, and what it needs.
func (s *scene) open() (*isolation.Boundary, func()) {
	s.t.Helper()
	b, closeAll, err := s.tryOpen()
	if err != nil {
		s.t.Fatal(err)
	}
	return b, closeAll
}

func (s *scene) tryOpen() (*isolation.Boundary, func(), error) {
	s.t.Helper()
	closeParts, err := s.parts()
	if err != nil {
		return nil, nil, err
	}
	b, err := isolation.OpenWith(context.Background(), s.config, s.hooks)
	closeAll := sync.OnceFunc(func() {
		if b != nil {
			_ = b.Close(context.Background())
		}
		closeParts()
	})
	s.t.Cleanup(closeAll)
	return b, closeAll, err
}

// state is what the tree holds: names, modes and contents.
func (s *scene) state() string {
	s.t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(s.dir, path)
		out.WriteString(info.Mode().String() + " " + filepath.ToSlash(rel))
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out.WriteString(" " + string(content))
		}
		out.WriteString("\n")
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out.String()
}

// modify is an edit of a file of the tree as it is now.
func (s *scene) modify(name, content string) allowlist.Edit {
	s.t.Helper()
	old, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(name)))
	if err != nil {
		s.t.Fatal(err)
	}
	return allowlist.Edit{Op: allowlist.Modify, Path: name, Content: []byte(content), Base: allowlist.Sum(old)}
}

// good is a proposal that passes the gate; each number makes another variant.
func (s *scene) good(number string) isolation.Proposal {
	return isolation.Proposal{Edits: []allowlist.Edit{s.modify("src/a.txt", "alpha "+number+"\n")}}
}

// bad is one that does not.
func (s *scene) bad(number string) isolation.Proposal {
	return isolation.Proposal{Edits: []allowlist.Edit{s.modify("src/a.txt", "omega "+number+"\n")}}
}

// fakeExecutor runs nothing. By default it looks whether the workspace passes the gate, as the gate's script would.
type fakeExecutor struct {
	caps executor.Capability
	run  func(ctx context.Context, spec executor.Spec) (*executor.Result, error) // nil: gated

	mu    sync.Mutex
	specs []executor.Spec
}

func (f *fakeExecutor) Capabilities() executor.Capability { return f.caps }

func (f *fakeExecutor) Run(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	f.mu.Lock()
	f.specs = append(f.specs, spec)
	f.mu.Unlock()
	if f.run != nil {
		return f.run(ctx, spec)
	}
	return gated(spec)
}

// runs returns what was run so far.
func (f *fakeExecutor) runs() []executor.Spec {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.specs)
}

// gated is the gate: src/a.txt must hold "alpha".
func gated(spec executor.Spec) (*executor.Result, error) {
	content, err := os.ReadFile(filepath.Join(spec.Workspace, "src", "a.txt"))
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(content), "alpha") {
		return ended(1), nil
	}
	return ended(0), nil
}

func ended(code int) *executor.Result {
	return &executor.Result{Cause: executor.CauseExited, ExitCode: code}
}

// generator is a function that generates.
type generator func(ctx context.Context, s *isolation.Spender) ([]allowlist.Edit, error)

func (g generator) Generate(ctx context.Context, s *isolation.Spender) ([]allowlist.Edit, error) {
	return g(ctx, s)
}

// judge is a function that judges.
type judge func(ctx context.Context, e isolation.Evaluation) (isolation.Ruling, error)

func (j judge) Judge(ctx context.Context, e isolation.Evaluation) (isolation.Ruling, error) {
	return j(ctx, e)
}

// whys are the reasons of a verdict without their details.
func whys(v *isolation.Verdict) (list []isolation.Why) {
	if v == nil {
		return nil
	}
	for _, r := range v.Reasons {
		list = append(list, r.Why)
	}
	return list
}

// exitStatus keeps what exited by itself with 0.
func exitStatus(_ context.Context, e isolation.Evaluation) (isolation.Ruling, error) {
	if e.Result.OK() {
		return isolation.Keep, nil
	}
	return isolation.Reject, nil
}

// contains fails unless the text of an error names something.
func contains(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("the error does not name %q: %v", text, err)
	}
}
