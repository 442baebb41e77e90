// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/binpack"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

// program is the source that is evolved, as it is in the checkout.
//
//go:embed program/pack_test.go program/priority/priority.go
var program embed.FS

// The evolved program in its own tree.
const (
	evolved   = "priority/priority.go"
	function  = "Score"
	instances = "instances.txt"
	packings  = "packings.bin"
	unit      = "% above the lower bound"

	// The tree is a module by itself, with the name that its packages have in the checkout.
	programModule = "module github.com/evoseal/containment/examples/evolve/program\n\ngo 1.24\n"
)

// packing evolves a rule for online bin packing.
type packing struct {
	problem binpack.Problem
	given   []benchmark
	ledger  string // file with the scores of what was kept, by content

	tested []binpack.Instance // what decides
	held   []binpack.Instance // what nothing was chosen by
	start  float64            // best fit, on tested
	best   float64            // the accepted tree
	last   float64            // the variant that was judged last
	judged bool

	content []byte // of the evolved file in the variant that is tried
}

// benchmark is a file of -instances.
type benchmark struct {
	name string
	all  []binpack.Instance
}

// newPacking reads the files first: a mistake in one should not show after the run.
func newPacking(o *options) (*packing, error) {
	p := &packing{}
	for _, name := range o.Instances {
		read, err := readInstances(name)
		if err != nil {
			return nil, err
		}
		p.given = append(p.given, benchmark{filepath.Base(name), read})
	}
	if o.Problem == "" {
		o.Problem = binpack.Uniform.String()
		if len(p.given) > 0 && p.given[0].all[0].Capacity == binpack.Weibull.Capacity()*p.given[0].all[0].Scale {
			o.Problem = binpack.Weibull.String()
		}
	}
	var err error
	if p.problem, err = binpack.ParseProblem(o.Problem); err != nil {
		return nil, err
	}
	// The sample of the search has other seeds, see package genetic.
	switch p.problem {
	case binpack.Uniform:
		p.tested, p.held = p.problem.Generate(o.Seed<<20+1, 40, 500), p.problem.Generate(o.Seed<<20+2, 100, 500)
	case binpack.Weibull:
		p.tested, p.held = p.problem.Generate(o.Seed<<20+1, 8, 5000), p.problem.Generate(o.Seed<<20+2, 10, 5000)
	}
	p.start = binpack.Excess(p.tested, binpack.BestFit)
	p.best = p.start
	return p, nil
}

func readInstances(name string) ([]binpack.Instance, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	read, err := binpack.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return read, nil
}

func (p *packing) prepare(dir string) error {
	source, err := fs.Sub(program, "program")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, source); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(programModule), 0o644); err != nil {
		return err
	}
	return writeInstances(filepath.Join(dir, instances), p.tested)
}

// writeInstances writes what the evolved program reads: the format of the OR-library with the scale in the place of the
// best known number of bins, which is nothing that a variant should know.
func writeInstances(path string, all []binpack.Instance) error {
	var b bytes.Buffer
	fmt.Fprintln(&b, len(all))
	for _, in := range all {
		fmt.Fprintf(&b, "%s\n%d %d %d\n", in.Name, in.Capacity, len(in.Items), in.Scale)
		for _, item := range in.Items {
			fmt.Fprintln(&b, item)
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// open finds out what the accepted tree is worth. What was kept is in the ledger before it is kept, so only best fit,
// where every run begins, is not there.
func (p *packing) open(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(evolved)))
	if err != nil {
		return err
	}
	scores, err := p.readLedger()
	if err != nil {
		return err
	}
	if score, ok := scores[allowlist.Sum(data).String()]; ok {
		p.best = score
		return nil
	}
	template, err := program.ReadFile("program/" + evolved)
	if err == nil && !bytes.Equal(data, template) {
		err = fmt.Errorf("%s is neither what the run began with nor anything that it kept; begin a new run", evolved)
	}
	return err
}

func (p *packing) readLedger() (map[string]float64, error) {
	scores := map[string]float64{}
	if err := loadJSON(p.ledger, &scores); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return scores, nil
}

func (p *packing) task() string {
	return "Online bin packing, " + p.problem.String() + ". Rewrite the body of " + function + " in " + evolved + `: it is
asked for each item and each bin with enough room, and the bin with the highest score gets the item. Parameters: the size
of the item, the gap that would stay free in the bin, the capacity. An empty bin is always among the candidates. Fewer
bins are better. Use numbers, if, the builtins min and max, and div, root and pick of the same file; the function must
give the same finite number whenever it is asked.`
}

func (p *packing) surface() allowlist.Config {
	return allowlist.Config{
		Surface: []allowlist.SurfaceRule{{
			Paths: []string{evolved}, Ops: []allowlist.Op{allowlist.Modify}, GoBodies: []string{function},
		}},
		Gate: []string{"pack_test.go", instances},
	}
}

// spec is what tests a variant.
func (p *packing) spec() executor.Spec {
	return executor.Spec{
		Args:      []string{"go", "test", "-ldflags=-s -w", "-count=1", ".", "-packing=" + packings},
		Artifacts: []string{packings},
		Limits:    executor.Limits{Memory: 1 << 30, CPUs: 2, ArtifactBytes: 8 << 20, ArtifactFiles: 1},
	}
}

func (p *packing) files(dir string) ([]variant.File, error) {
	f, err := readFile(dir, evolved, function)
	return []variant.File{f}, err
}

func (p *packing) scores() (start, best, last *variant.Score) {
	if p.judged {
		last = &variant.Score{Value: p.last, Unit: unit}
	}
	return &variant.Score{Value: p.start, Unit: unit}, &variant.Score{Value: p.best, Unit: unit}, last
}

func (p *packing) settled(accepted bool) {
	if accepted {
		p.best = p.last
	}
	p.judged, p.content = false, nil
}

func (p *packing) proposed(edits []allowlist.Edit) {
	for _, e := range edits {
		if e.Path == evolved {
			p.content = bytes.Clone(e.Content)
		}
	}
}

// flags spare each run the time for vetting, which there is nothing to find for in one expression.
func (p *packing) flags() []string { return []string{"-vet=off"} }

func (p *packing) baseline() string { return "" }
func (p *packing) done() bool       { return p.best <= 0 }
func (p *packing) success() bool    { return p.best < p.start }

func (p *packing) judge() isolation.Judge { return packingJudge{p} }

// packingJudge counts the bins of the packing that a run has left behind. What the run prints or claims plays no part.
type packingJudge struct{ p *packing }

// Needs asks for the packings.
func (packingJudge) Needs() isolation.JudgeNeeds {
	return isolation.JudgeNeeds{Artifacts: []string{packings}}
}

// Judge keeps a variant that needs fewer bins than the accepted one.
func (j packingJudge) Judge(_ context.Context, e isolation.Evaluation) (isolation.Ruling, error) {
	if e.Result == nil || !e.Result.OK() {
		return isolation.Reject, fmt.Errorf("%w: it does not compile, or its tests fail", isolation.ErrRejected)
	}
	bins, err := readPackings(e.Artifacts, j.p.tested)
	if err != nil {
		return isolation.Reject, err
	}
	j.p.last, j.p.judged = binpack.ExcessOf(j.p.tested, bins), true
	if !(j.p.last < j.p.best) {
		return isolation.Reject, fmt.Errorf("%w: %.3f %% is not below %.3f %%", isolation.ErrRejected, j.p.last, j.p.best)
	}
	if err := j.p.keep(j.p.content, j.p.last); err != nil {
		return isolation.Reject, err
	}
	return isolation.Keep, nil
}

// readPackings reads and checks what a run has left in a directory of the host's.
func readPackings(dir string, all []binpack.Instance) ([]int, error) {
	noResult := func(err error) error {
		return &isolation.RejectError{Findings: []isolation.Finding{{Kind: isolation.FindingNoReport, Detail: err.Error()}}}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, noResult(err)
	}
	defer root.Close()
	data, err := root.ReadFile(packings) // its size is bounded by the limits of the run
	if err != nil {
		return nil, noResult(err)
	}
	bins, err := binpack.Check(all, data)
	if err != nil {
		return nil, noResult(err)
	}
	return bins, nil
}

// keep notes the score of a variant that is about to be kept, by its content: a crash right after it is kept must not
// leave a tree of which nobody knows the score.
func (p *packing) keep(content []byte, score float64) error {
	scores, err := p.readLedger()
	if err != nil {
		return err
	}
	scores[allowlist.Sum(content).String()] = score
	return saveJSON(p.ledger, scores)
}

// summary measures the accepted tree with the same program in the same sandbox, on what nothing was chosen by.
func (p *packing) summary(ctx context.Context, l layout, run sandbox) (string, error) {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%s\tfirst fit\tbest fit\tbest found\t\n", unit)
	row := func(name string, all []binpack.Instance) error {
		bins, err := p.measure(ctx, l, run, all)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		first, best := binpack.Excess(all, binpack.FirstFit), binpack.Excess(all, binpack.BestFit)
		fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%.2f\t\n", name, first, best, binpack.ExcessOf(all, bins))
		return nil
	}
	size := func(all []binpack.Instance) string { return fmt.Sprintf("%d × %d", len(all), len(all[0].Items)) }
	err := row("chosen by: "+size(p.tested)+" generated items", p.tested)
	err = errors.Join(err, row("held out: "+size(p.held)+" generated items", p.held))
	for _, g := range p.given {
		err = errors.Join(err, row(fmt.Sprintf("%.40q: %s items", g.name, size(g.all)), g.all))
	}
	table.Flush()
	return b.String(), err
}

// measure packs other instances: the accepted tree in a copy, with another file of instances.
func (p *packing) measure(ctx context.Context, l layout, run sandbox, all []binpack.Instance) ([]int, error) {
	dir, err := os.MkdirTemp(l.dir, "measure-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	tree, out := filepath.Join(dir, "tree"), filepath.Join(dir, "out")
	if err := os.CopyFS(tree, os.DirFS(l.tree())); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(tree, instances)); err != nil {
		return nil, err
	}
	if err := writeInstances(filepath.Join(tree, instances), all); err != nil {
		return nil, err
	}
	spec := p.spec()
	spec.ArtifactDir = out
	result, err := run(ctx, tree, spec)
	if err != nil {
		return nil, err
	}
	if !result.OK() {
		return nil, fmt.Errorf("the run ended as %v: %s", result.Cause, result.Stdout.String())
	}
	return readPackings(out, all)
}
