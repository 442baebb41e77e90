// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/internal/executors"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/runaway"
)

// outcome is what stands in a cell.
type outcome string

const (
	contained  outcome = "contained"
	refused    outcome = "refused"
	notClaimed outcome = "not claimed"
	broken     outcome = "BROKEN"
	unproven   outcome = "unproven"
	succeeds   outcome = "succeeds" // on a plain process
	fails      outcome = "fails"
)

func (o outcome) holds() bool { return o == contained || o == refused || o == notClaimed }

type cell struct {
	outcome outcome
	detail  string
}

// column is one executor, with a cell for each attack.
type column struct {
	name   string
	cells  []cell
	honest error // why a variant that does its work was not kept; nil: it was
}

// observation is what the host saw of one attempt.
type observation struct {
	plain  bool
	passed bool   // the tests, as far as somebody believes it
	output string // both streams, and the results that were handed out
	kept   int    // bytes of output in the host's memory
	most   int    // processes with the mark of the attempt at one time
	left   int    // and when it was over
}

// What a run may have. The attacks take more.
const (
	maxProcesses = 32
	maxOutput    = 256 << 10
)

var limits = executor.Limits{
	Wall: 8 * time.Second, Memory: 128 << 20, Disk: 32 << 20, Output: maxOutput, Processes: maxProcesses,
}

// attackExecutor makes all attacks over one executor, and in the end the work that they pretend to do.
func attackExecutor(ctx context.Context, c isolation.Candidate) column {
	col := column{name: c.Name, cells: make([]cell, len(attacks()))}
	r, err := open(ctx, c)
	if err != nil {
		for i := range col.cells {
			col.cells[i] = cell{outcome: unproven}
		}
		col.honest = err
		return col
	}
	defer r.close(ctx)
	for i, a := range attacks() {
		if c.Executor.Capabilities().Has(a.needs) {
			col.cells[i] = r.attack(ctx, a)
		} else {
			col.cells[i] = cell{notClaimed, r.refuses(ctx, a.needs)}
			if col.cells[i].detail != "" {
				col.cells[i].outcome = broken
			}
		}
	}
	honest := []allowlist.Edit{r.s.modify(workFile, "echo $((6 * 7)) > answer\n")}
	v, err := r.b.Try(ctx, isolation.Proposal{Edits: honest})
	if err != nil || !v.Accepted {
		col.honest = fmt.Errorf("a variant that does its work was not kept: %+v, %w", v, err)
	}
	return col
}

// rig is a run with everything that a boundary consists of.
type rig struct {
	s     *scene
	c     isolation.Candidate
	b     *isolation.Boundary
	judge *watcher
	undo  []func()
}

func (r *rig) close(ctx context.Context) {
	for i := len(r.undo) - 1; i >= 0; i-- {
		r.undo[i]()
	}
}

// open proves the executor and opens a boundary over it. What the trust model says is false, and that is the point:
// the operator believes in a trusted provider, and it is an adversary. If that were declared, no tier below a container
// would do.
func open(ctx context.Context, c isolation.Candidate) (_ *rig, err error) {
	r := &rig{c: c, judge: &watcher{}}
	defer func() {
		if err != nil {
			r.close(ctx)
		}
	}()
	base, err := os.MkdirTemp("", "attack-")
	if err != nil {
		return nil, err
	}
	r.undo = append(r.undo, func() { os.RemoveAll(base) })
	if r.s, err = newScene(ctx, base); err != nil {
		return nil, err
	}
	r.undo = append(r.undo, r.s.close)
	tree, err := allowlist.OpenTree(r.s.dir, nil)
	if err != nil {
		return nil, err
	}
	r.undo = append(r.undo, func() { tree.Close() })
	policy, err := allowlist.New(allowlist.Config{
		Surface: []allowlist.SurfaceRule{{
			Paths: []string{"src/**"}, Ops: []allowlist.Op{allowlist.Modify, allowlist.Create},
		}},
		Gate: []string{"gate/**"},
	})
	if err != nil {
		return nil, err
	}
	store, err := rollback.Open(filepath.Join(base, "store"), &rollback.Options{
		Exclude: []string{}, Foreign: rollback.ForeignQuarantine,
	})
	if err != nil {
		return nil, err
	}
	r.undo = append(r.undo, func() { store.Close() })
	records, err := runaway.FileStore(filepath.Join(base, "runs"))
	if err != nil {
		return nil, err
	}
	governor, err := runaway.Open(ctx, "attack", runaway.Limits{
		MaxIterations: 100, MaxConsecutiveFailures: 100, MaxSameClass: runaway.NoLimit, MaxFailures: runaway.NoLimit,
	}, records, &runaway.Options{Tree: r.s.dir})
	if err != nil {
		return nil, err
	}
	r.undo = append(r.undo, func() { governor.Close(context.WithoutCancel(ctx)) })
	// Proven here, before Open asks for it: whatever it claims, so that nothing in its column is hearsay.
	if _, err := executors.Prove(ctx, c.Executor); err != nil {
		return nil, err
	}
	caps := c.Executor.Capabilities()
	r.b, err = isolation.Open(ctx, isolation.Config{
		Trust: model(), Sources: sources(base), Governor: governor, Tree: tree, Edits: policy, Store: store,
		Executors: []isolation.Candidate{c}, Judge: r.judge, MinTier: isolation.Reached(caps),
		StateDir: filepath.Join(base, "state"),
		Run: executor.Spec{
			Args: []string{"sh", "gate/check.sh"}, Limits: limits, Artifacts: []string{"report/**"}, Mounts: tools(c.Name),
			Require: caps,
		},
	})
	if err != nil {
		return nil, err
	}
	r.undo = append(r.undo, func() { r.b.Close(context.WithoutCancel(ctx)) })
	return r, nil
}

// attack makes one attempt and looks what came of it.
func (r *rig) attack(ctx context.Context, a attack) cell {
	if err := r.s.reset(ctx); err != nil {
		return cell{unproven, err.Error()}
	}
	if a.first != nil {
		edits := []allowlist.Edit{r.s.modify(workFile, a.first(r.s))}
		if _, err := r.b.Try(ctx, isolation.Proposal{Edits: edits}); err != nil {
			return cell{unproven, err.Error()}
		}
	}
	p := isolation.Proposal{Generate: adversary{r.s, a}}
	watch := watchProcesses(r.s.number())
	r.judge.handed = ""
	v, err := r.b.Try(ctx, p)
	o := &observation{most: watch(), left: len(tagged(r.s.number())), output: r.judge.handed}
	killTagged(r.s.number())
	if err != nil {
		return cell{unproven, err.Error()}
	}
	o.passed = v.Accepted
	if res := v.Result; res != nil {
		o.output += res.Stdout.String() + res.Stderr.String()
		o.kept = len(res.Stdout.Head) + len(res.Stdout.Tail) + len(res.Stderr.Head) + len(res.Stderr.Tail)
	}
	if had, seen := a.effect(r.s, o); had || v.Accepted {
		return cell{broken, seen}
	}
	detail := fmt.Sprint(v.Reasons)
	switch {
	case v.Result == nil:
		return cell{refused, detail}
	case !containsLine(o.output, r.s.begin()):
		return cell{unproven, "the variant did not begin: " + detail + ": " + o.output}
	}
	return cell{contained, fmt.Sprintf("%s (%v: %s)", detail, v.Result.Cause, v.Result.Detail)}
}

// refuses demands that a run which requires what the executor does not claim is refused, and says what happened
// otherwise.
func (r *rig) refuses(ctx context.Context, needs executor.Capability) string {
	result, err := r.c.Executor.Run(ctx, executor.Spec{Args: []string{"true"}, Workspace: r.s.dir, Require: needs})
	if result == nil && errors.Is(err, executor.ErrUnsupported) {
		return ""
	}
	return fmt.Sprintf("a run that requires %v was not refused: %v", needs, err)
}

// adversary is the generator. It is asked like any other.
type adversary struct {
	s *scene
	a attack
}

// Generate proposes the attack.
func (g adversary) Generate(context.Context, *isolation.Spender) ([]allowlist.Edit, error) {
	if g.a.edits != nil {
		return g.a.edits(g.s)
	}
	return []allowlist.Edit{g.s.modify(workFile, g.a.script(g.s))}, nil
}

// watcher judges by the exit status, which here is made by what variants cannot change, and reads what was handed out.
type watcher struct{ handed string }

// Judge reads the artifacts, then rules.
func (w *watcher) Judge(ctx context.Context, e isolation.Evaluation) (isolation.Ruling, error) {
	if e.Artifacts != "" {
		w.handed = readAll(e.Artifacts)
	}
	return isolation.ExitStatus{}.Judge(ctx, e)
}

// readAll reads every file below a directory, through links: whoever gets results handed does so.
func readAll(dir string) (all string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if entries, e := os.ReadDir(path); e == nil && err == nil && !d.IsDir() { // a link to a directory
			for _, entry := range entries {
				b, _ := os.ReadFile(filepath.Join(path, entry.Name()))
				all += string(b)
			}
			return nil
		}
		b, _ := os.ReadFile(path)
		all += string(b)
		return nil
	})
	return all
}
