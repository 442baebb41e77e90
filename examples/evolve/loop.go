// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/evoseal/containment/examples/evolve/internal/report"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/runaway"
)

// loop makes variants until there is a reason to stop.
type loop struct {
	o     *options
	l     layout
	job   job
	gen   generator
	b     *isolation.Boundary
	parts *parts
	term  *report.Terminal

	history *history
	started time.Time
	ended   time.Time
	first   int // variants that were tried before this start
}

// run returns nil if the run came to its end and was worth it, errNothing if it was not, and otherwise why it stopped.
func (p *loop) run(ctx context.Context) error {
	var err error
	if err = p.job.open(p.l.tree()); err != nil {
		return err
	}
	if p.history, err = openHistory(p.l.history()); err != nil {
		return err
	}
	defer p.history.close()
	if err := p.locate(ctx); err != nil {
		return err
	}
	p.started, p.first = time.Now(), len(p.history.all)
	p.header()
	stopped := p.variants(ctx)
	p.ended = time.Now()
	p.term.Status(nil)
	var stop *runaway.StopError
	if errors.As(stopped, &stop) && stop.Reason == runaway.ReasonCompleted {
		stopped = nil
	}
	if err := p.drawCurve(); err != nil {
		return errors.Join(stopped, err)
	}
	if stopped != nil {
		p.term.Println(fmt.Sprintf("stopped; go on with: go run ./examples/evolve -resume -state %s", p.l.dir))
		return stopped
	}
	if err := p.finish(ctx); err != nil {
		return err
	}
	if !p.job.success() {
		return errNothing
	}
	return nil
}

// variants is the loop. It returns nil if nothing is left to do.
func (p *loop) variants(ctx context.Context) error {
	for !p.job.done() {
		state, err := p.state()
		if err != nil {
			return err
		}
		p.status()
		ask := &asker{gen: p.gen, who: identity(p.o), state: state, proposed: p.job.proposed}
		before := time.Now()
		v, err := p.b.Try(ctx, isolation.Proposal{Generate: ask})
		if v == nil || v.Iteration == 0 {
			if err == nil {
				err = errors.New("the boundary has neither begun a variant nor said why")
			}
			return err
		}
		if ctx.Err() != nil && !v.Accepted {
			return context.Canceled // what it was about to try is no variant that failed
		}
		if ask.exhausted {
			return nil
		}
		if noteErr := p.settle(v, ask, time.Since(before)); noteErr != nil {
			return errors.Join(err, noteErr)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// state is what a generator is told.
func (p *loop) state() (*variant.State, error) {
	files, err := p.job.files(p.l.tree())
	if err != nil {
		return nil, err
	}
	start, best, _ := p.job.scores()
	return &variant.State{
		Iteration: p.b.Status().Governor.Attempts + 1, Task: p.job.task(), Surface: files, Start: start, Best: best,
		Baseline: p.job.baseline(), History: p.history.last(variant.MaxHistory),
	}, nil
}

// settle records one variant and prints its line.
func (p *loop) settle(v *isolation.Verdict, ask *asker, took time.Duration) error {
	_, _, score := p.job.scores()
	p.job.settled(v.Accepted)
	e := entry{Took: took, Stages: stagesOf(v.Timing), Past: variant.Past{
		Iteration: v.Iteration, Accepted: v.Accepted, Score: score, Stage: v.Stage.String(), Note: ask.note,
	}}
	for _, r := range v.Reasons {
		e.Reasons = append(e.Reasons, r.String())
	}
	if !v.Accepted {
		e.Output = output(v.Result)
	}
	if b, ok := p.gen.(*breeder); ok {
		e.Screened = b.screened()
	}
	p.term.Println(p.line(&e))
	return p.history.add(e)
}

// output is the end of what a run printed.
func output(r *executor.Result) string {
	if r == nil || r.OK() {
		return ""
	}
	text := r.Stdout.String() + r.Stderr.String()
	return strings.ToValidUTF8(text[max(0, len(text)-variant.MaxOutput):], "\uFFFD")
}

// finish measures what was found, and says where it is.
func (p *loop) finish(ctx context.Context) error {
	p.term.Status(func(d time.Duration) string {
		return fmt.Sprintf("measuring what was found · %v", d.Round(time.Second))
	})
	summary, err := p.job.summary(ctx, p.l, p.sandbox())
	p.term.Status(nil)
	p.term.Print(p.footer(summary))
	return err
}

// sandbox runs a directory in the executor that the boundary has proven, with the same demands.
func (p *loop) sandbox() sandbox {
	st := p.b.Status()
	return func(ctx context.Context, dir string, spec executor.Spec) (*executor.Result, error) {
		for _, c := range p.parts.config.Executors {
			if c.Name == st.Executor && c.Executor != nil {
				full := p.parts.config.Run
				full.Workspace, full.Args, full.Artifacts, full.ArtifactDir = dir, spec.Args, spec.Artifacts, spec.ArtifactDir
				full.Require |= st.Required.Needs()
				return c.Executor.Run(ctx, full)
			}
		}
		return nil, fmt.Errorf("there is no executor %s any more", st.Executor)
	}
}
