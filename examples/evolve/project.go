// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

// project mends a Go module: a copy of it, until its tests pass.
type project struct {
	origin string // the module; read once and never written
	rules  allowlist.Config
	policy *allowlist.Policy
	args   []string
	wall   time.Duration
	passes bool   // the accepted tree does
	report string // what it printed, if it does not
}

func newProject(o *options) (*project, error) {
	origin, err := filepath.Abs(o.Tree)
	if err != nil {
		return nil, err
	}
	o.Tree = origin
	p := &project{origin: origin, args: strings.Fields(o.Test), wall: o.Wall}
	if p.isGoTest() && !slices.Contains(p.args, "-json") {
		p.args = slices.Insert(p.args, 2, "-json")
	}
	p.rules = allowlist.Config{
		Surface: []allowlist.SurfaceRule{{Paths: o.Surface, Ops: []allowlist.Op{allowlist.Modify}}},
		Gate:    []string{"*_test.go", "testdata"},
	}
	p.policy, err = allowlist.New(p.rules)
	return p, err
}

func (p *project) isGoTest() bool { return len(p.args) > 1 && p.args[0] == "go" && p.args[1] == "test" }

// prepare copies the module, without what no run would see.
func (p *project) prepare(dir string) error {
	if _, err := os.Stat(filepath.Join(p.origin, "go.mod")); err != nil {
		return fmt.Errorf("-tree %s is not the directory of a Go module: %w", p.origin, err)
	}
	return filepath.WalkDir(p.origin, func(path string, e fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(p.origin, path)
		if err = errors.Join(err, relErr); err != nil || rel == "." {
			return err
		}
		if slices.Contains(executor.DefaultHidden(), e.Name()) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return copyEntry(path, filepath.Join(dir, rel), e)
	})
}

func copyEntry(from, to string, e fs.DirEntry) error {
	switch e.Type() {
	case fs.ModeDir:
		return os.Mkdir(to, 0o755)
	case fs.ModeSymlink:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case 0:
		fi, err := e.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644|fi.Mode().Perm()&0o100)
	}
	return fmt.Errorf("%s is neither file, directory nor link", from)
}

func (p *project) open(string) error { return nil }

func (p *project) task() string {
	return "The tests of this Go module fail. Change the files of the surface so that `" + strings.Join(p.args, " ") +
		"` passes. Tests cannot be changed."
}

func (p *project) surface() allowlist.Config { return p.rules }

func (p *project) spec() executor.Spec {
	return executor.Spec{Args: p.args, Limits: executor.Limits{
		Memory: 2 << 30, CPUs: 2, Disk: 1 << 30, CPU: 2 * p.wall, Processes: 256,
	}}
}

// What a generator is shown at most.
const (
	maxFile    = 256 << 10
	maxSurface = 4 << 20
)

// files are those that the policy lets an edit change.
func (p *project) files(dir string) (all []variant.File, err error) {
	left := maxSurface
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if !p.policy.Explain(allowlist.Modify, rel).Allowed {
			return nil
		}
		fi, err := e.Info()
		if err != nil || fi.Size() > maxFile || int(fi.Size()) > left {
			return err
		}
		left -= int(fi.Size())
		f, err := readFile(dir, rel)
		all = append(all, f)
		return err
	})
	if err == nil && len(all) == 0 {
		err = errors.New("-surface matches no file that may be changed: " +
			"patterns are relative to -tree, and tests are never on it")
	}
	return all, err
}

func (p *project) scores() (start, best, last *variant.Score) { return nil, nil, nil }
func (p *project) flags() []string                            { return nil }
func (p *project) baseline() string                           { return p.report }
func (p *project) proposed([]allowlist.Edit)                  {}
func (p *project) settled(accepted bool)                      { p.passes = p.passes || accepted }
func (p *project) done() bool                                 { return p.passes }
func (p *project) success() bool                              { return p.passes }

func (p *project) judge() isolation.Judge {
	if p.isGoTest() {
		return mending{p}
	}
	return isolation.ExitStatus{}
}

// mending is isolation.GoTest for a tree whose tests fail: all tests that there are must pass, and none may vanish.
type mending struct{ p *project }

// Needs is what GoTest needs.
func (mending) Needs() isolation.JudgeNeeds { return isolation.GoTest{}.Needs() }

// Judge keeps a variant with which every test passes.
func (mending) Judge(ctx context.Context, e isolation.Evaluation) (isolation.Ruling, error) {
	return isolation.GoTest{}.Judge(ctx, e)
}

// Measure takes every test of the accepted tree into the baseline, whether it passes or not. A tree that does not
// compile has none; then any test will do.
func (m mending) Measure(ctx context.Context, e isolation.Evaluation) (*isolation.Baseline, error) {
	if b, err := (isolation.GoTest{}).Measure(ctx, e); err == nil {
		m.p.passes, m.p.report = true, ""
		return b, nil
	}
	m.p.report = string(e.Stdout[max(0, len(e.Stdout)-variant.MaxBaseline):])
	ends := map[string]string{}
	for line := range bytes.Lines(e.Stdout) {
		var event struct{ Action, Package, Test string }
		if json.Unmarshal(line, &event) != nil || event.Test == "" {
			continue
		}
		ends[event.Package+" "+event.Test] = event.Action
	}
	b := &isolation.Baseline{}
	for name, action := range ends {
		if action == "skip" {
			b.Skipped = append(b.Skipped, name)
		} else {
			b.Passed = append(b.Passed, name)
		}
	}
	slices.Sort(b.Passed)
	slices.Sort(b.Skipped)
	return b, nil
}

// summary writes the patch for the module that the run was made from. It is left to the user to apply it.
func (p *project) summary(_ context.Context, l layout, _ sandbox) (string, error) {
	tree, err := allowlist.OpenTree(p.origin, nil)
	if err != nil {
		return "", err
	}
	defer tree.Close()
	files, err := p.files(l.tree())
	if err != nil {
		return "", err
	}
	var edits []allowlist.Edit
	for _, f := range files {
		before, err := tree.ReadFile(f.Path)
		if err != nil {
			return "", err
		}
		if string(before) != f.Content {
			edits = append(edits, allowlist.Edit{
				Op: allowlist.Modify, Path: f.Path, Content: []byte(f.Content), Base: allowlist.Sum(before),
			})
		}
	}
	if len(edits) == 0 {
		return "nothing is changed\n", nil
	}
	plan, err := p.policy.Plan(tree, edits)
	if err != nil {
		return "", err
	}
	patch := l.path("best.patch")
	if err := save(patch, plan.Diff()); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\nit is in %s; apply it with: git -C %s apply %s\n", plan.Diff(), patch, p.origin, patch), nil
}
