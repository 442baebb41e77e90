// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/report"
	"github.com/evoseal/containment/examples/internal/executors"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/toolchain"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/runaway"
)

const runID = "evolve"

// evolve is one start of the program: from the flags to the summary.
func evolve(ctx context.Context, o *options, stdout, stderr io.Writer) (err error) {
	term := report.NewTerminal(stdout)
	defer term.Close()
	logger := slog.New(slog.DiscardHandler)
	if o.Verbose {
		logger = slog.New(slog.NewTextHandler(stderr, nil))
	}
	l, j, err := begin(o)
	if err != nil {
		return err
	}
	term.Println("state     " + l.dir)
	term.Println("tree      " + l.tree())
	term.Println("stop it   touch " + o.killFile(l))

	spec := j.spec()
	spec.Limits.Wall = o.Wall
	if err := equip(ctx, term, l, j.flags(), &spec); err != nil {
		return err
	}
	set, err := executors.Open(ctx, o.Executor, executors.Options{Logger: logger, AllowOldRuntime: o.OldRuntime})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()

	p, err := assemble(ctx, o, l, j, spec, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	p.config.Executors = set.Candidates
	if o.Generator == "genetic" {
		p.config.Executors = lightest(set.Candidates)
	}
	started := time.Now()
	term.Status(func(d time.Duration) string {
		return fmt.Sprintf("attacking the executors, to see whether they hold · %v", d.Round(time.Second))
	})
	b, err := open(ctx, p.config)
	term.Status(nil)
	if stop := (*runaway.StopError)(nil); errors.As(err, &stop) && stop.Reason == runaway.ReasonCompleted {
		return fmt.Errorf("%w; -max raises the number of variants", err)
	}
	if err != nil {
		term.Print(explain(err, set.Candidates, l.dir))
		return err
	}
	defer func() { err = errors.Join(err, b.Close(context.WithoutCancel(ctx))) }()
	st := b.Status()
	term.Println(fmt.Sprintf("executor  %s, tier %v required; proven in %.1f s: %v",
		st.Executor, st.Required, time.Since(started).Seconds(), st.Proven))
	return (&loop{o: o, l: l, job: j, gen: p.gen, b: b, parts: p, term: term}).run(ctx)
}

// attempts is how often the boundary is opened on a host that is too busy: the attacks have a deadline, and what could
// not be finished proves nothing. Nothing is weakened by asking again.
const attempts = 5

func open(ctx context.Context, c isolation.Config) (b *isolation.Boundary, err error) {
	for range attempts {
		b, err = isolation.Open(ctx, c)
		late := errors.Is(err, isolation.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
		if !late || ctx.Err() != nil {
			break
		}
	}
	return b, err
}

// lightest puts what starts fastest first: every candidate is proven to hold what is required, and a run of a closed
// grammar requires no container.
func lightest(all []isolation.Candidate) (sorted []isolation.Candidate) {
	for _, heavy := range []bool{false, true} {
		for _, c := range all {
			if (c.Name == "containerd") == heavy {
				sorted = append(sorted, c)
			}
		}
	}
	return sorted
}

// begin finds or makes the run: its directory, its job and its tree.
func begin(o *options) (l layout, j job, err error) {
	if o.Resume {
		if l, err = place(o); err != nil {
			return l, nil, err
		}
		if err = o.load(l.run()); err != nil {
			return l, nil, err
		}
		j, err = newJob(o)
	} else {
		// A mistake in the call should leave no directory behind.
		if j, err = newJob(o); err != nil {
			return l, nil, err
		}
		if l, err = place(o); err == nil {
			err = newTree(o, l, j)
		}
	}
	if err != nil {
		return l, nil, err
	}
	if p, ok := j.(*packing); ok {
		p.ledger = l.scores()
	}
	// Last: a directory without this file holds no run.
	return l, j, saveJSON(l.run(), o)
}

func newTree(o *options, l layout, j job) error {
	o.Started = time.Now().UTC().Truncate(time.Second)
	if err := os.Mkdir(l.tree(), 0o755); err != nil {
		return err
	}
	return j.prepare(l.tree())
}

func newJob(o *options) (job, error) {
	if o.Tree != "" {
		return newProject(o)
	}
	return newPacking(o)
}

// load takes what belongs to the run from its state, and what was given now from the command line.
func (o *options) load(path string) error {
	was := &options{}
	if err := loadJSON(path, was); err != nil {
		return err
	}
	now := *o
	*o = *was
	o.Instances, o.State, o.Resume = now.Instances, now.State, now.Resume
	o.Override, o.Approval = now.Override, now.Approval
	o.Curve, o.Verbose, o.OldRuntime, o.given = now.Curve, now.Verbose, now.OldRuntime, now.given
	for name, take := range map[string]func(){
		"max":      func() { o.Max = now.Max },
		"executor": func() { o.Executor = now.Executor },
		"calls":    func() { o.Calls = now.Calls },
		"tokens":   func() { o.Tokens = now.Tokens },
		"patience": func() { o.Patience = now.Patience },
		"key-file": func() { o.KeyFile = now.KeyFile },
	} {
		if now.given[name] {
			take()
		}
	}
	o.Max = max(o.Max, was.Max)
	return nil
}

func (o *options) killFile(l layout) string {
	if o.KillFile == "" {
		return filepath.Join(l.governor(), runaway.DefaultKillFile)
	}
	return o.KillFile
}

// equip gives the runs Go. The standard library is compiled once, out of what the caller's own Go has already, and is
// shared read-only.
func equip(ctx context.Context, term *report.Terminal, l layout, flags []string, spec *executor.Spec) error {
	if err := makeOwn(l.seeds); err != nil {
		return err
	}
	started := time.Now()
	term.Status(func(d time.Duration) string {
		return fmt.Sprintf("compiling the packages that variants share, once · %v", d.Round(time.Second))
	})
	defer term.Status(nil)
	tc, err := toolchain.Go(ctx, toolchain.GoConfig{Flags: flags, Seed: toolchain.GoSeed{
		Dir: l.seeds, Module: l.tree(), BuildCache: buildCache(ctx),
	}})
	if err != nil {
		return err
	}
	term.Println(fmt.Sprintf("toolchain %s, shared packages ready in %.1f s", tc.Version, time.Since(started).Seconds()))
	return tc.Apply(spec)
}

// buildCache is where the caller's Go keeps what it compiled, such as the packages of this program: no variant has ever
// run with the right to write there. "" if it cannot be told.
func buildCache(ctx context.Context) string {
	c := exec.CommandContext(ctx, "go", "env", "GOCACHE")
	c.Dir, c.Env = "/", append(os.Environ(), "GOTOOLCHAIN=local") // no go.mod shall make it fetch another Go
	out, err := c.Output()
	dir := strings.TrimSpace(string(out))
	if fi, statErr := os.Stat(dir); err != nil || statErr != nil || !fi.IsDir() || !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// parts are what a boundary is made of. They are opened here and closed here.
type parts struct {
	config   isolation.Config
	gen      generator
	governor *runaway.Governor
	tree     *allowlist.Tree
	store    *rollback.Store
}

func (p *parts) close() (err error) {
	if p.governor != nil {
		err = errors.Join(err, p.governor.Close(context.Background()))
	}
	if p.tree != nil {
		err = errors.Join(err, p.tree.Close())
	}
	if p.store != nil {
		err = errors.Join(err, p.store.Close())
	}
	return err
}

// assemble opens everything but the boundary.
func assemble(
	ctx context.Context, o *options, l layout, j job, spec executor.Spec, logger *slog.Logger,
) (_ *parts, err error) {
	p := &parts{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.gen, err = newGenerator(o, l); err != nil {
		return nil, err
	}
	records, err := runaway.FileStore(l.governor())
	if err != nil {
		return nil, err
	}
	if p.governor, err = openGovernor(ctx, o, l, records, logger); err != nil {
		return nil, err
	}
	policy, err := allowlist.New(j.surface())
	if err != nil {
		return nil, err
	}
	if p.tree, err = allowlist.OpenTree(l.tree(), &allowlist.TreeOptions{Logger: logger}); err != nil {
		return nil, err
	}
	keepAll := rollback.Options{Exclude: []string{}, Foreign: rollback.ForeignQuarantine, Logger: logger}
	if p.store, err = rollback.Open(l.store(), &keepAll); err != nil {
		return nil, err
	}
	model, sources := trust(o, spec)
	p.config = isolation.Config{
		Trust: model, Sources: sources, Governor: p.governor, Tree: p.tree, Edits: policy, Store: p.store,
		Run: spec, Judge: j.judge(), StateDir: l.boundary(), Logger: logger,
	}
	if o.Override != "" {
		if p.config.Override, err = isolation.LoadOverride(o.Override); err != nil {
			return nil, err
		}
	}
	if o.Approval != "" {
		if p.config.Approval, err = isolation.LoadApproval(o.Approval); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// openGovernor bounds the run. Most variants of a search are worse than what there is, so rows of rejections are no
// reason to stop: the number of variants, their time and the budget are.
func openGovernor(
	ctx context.Context, o *options, l layout, records runaway.Store, logger *slog.Logger,
) (*runaway.Governor, error) {
	limits := runaway.Limits{
		Iterations: o.Max, MaxIterations: o.Max + 1, MaxConsecutiveFailures: o.Max,
		MaxFailures: runaway.NoLimit, MaxSameClass: runaway.NoLimit, MaxDuplicates: runaway.NoLimit,
		NoImprovement: runaway.NoLimit,
		// A busy server is asked four times, and may ask for a minute each time.
		PerIteration: o.Wall + 4*o.Patience + 10*time.Minute,
	}
	options := runaway.Options{Tree: l.tree(), Logger: logger}
	if o.KillFile != "" { // the default is the same file, whose directory the store makes
		options.KillFile = o.killFile(l)
	}
	if o.Generator == "openai" {
		limits.Budget = runaway.Usage{Calls: o.Calls, Tokens: o.Tokens}
		options.Metered = runaway.MeterCalls | runaway.MeterTokens
	}
	if o.Resume {
		if _, err := os.Lstat(l.history()); !errors.Is(err, fs.ErrNotExist) {
			options.MustExist = true // it has begun, so its journal must be there
		}
	}
	g, err := runaway.Open(ctx, runID, limits, records, &options)
	if err == nil || !o.Resume {
		return g, err
	}
	return raise(ctx, o, l, limits, options, err)
}
