// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/evoseal/containment/executor/executortest"
)

// attacking is held by the one verification of this process that makes attacks: they change its environment and its
// descriptors.
var attacking = make(chan struct{}, 1)

const (
	// abandonTime is how long after the end a probe may take to clean up. It is longer than what the guard gives a run.
	abandonTime = endTime + 500*time.Millisecond
	// detailSize bounds what is kept of a text that a variant or an executor may have had a hand in.
	detailSize = 400

	notMade = "not made"
)

// attack makes the probes: first a single run, since without that there is no sense in the rest.
func (v *verification) attack(ctx context.Context) error {
	cases, err := choose(v.report.Needs, v.options.Full)
	if err != nil {
		return err
	}
	v.report.Probes = make([]Probe, len(cases))
	for i, c := range cases {
		v.report.Probes[i] = Probe{Name: c.Name, Capability: c.Needs, Detail: notMade}
	}
	select {
	case attacking <- struct{}{}:
		defer func() { <-attacking }()
	case <-ctx.Done():
		return fmt.Errorf("another verification is under way: %w", context.Cause(ctx))
	}
	defer executortest.Prepare()()
	if err := v.start(ctx, cases[0], &v.report.Probes[0]); err != nil {
		return err
	}
	v.rest(ctx, cases)
	if err := v.guard.tripped(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// start makes the first probe.
func (v *verification) start(ctx context.Context, c executortest.Case, p *Probe) error {
	v.guard.limit = v.options.patient(firstTime)
	v.control(ctx, c, p)
	v.check(ctx, c, p)
	switch err := errors.Join(v.guard.tripped(), context.Cause(ctx)); {
	case err != nil:
		return err
	case !p.Proves():
		return errNoStart
	}
	if v.guard.limit = v.options.patient(runTime); v.options.Full {
		v.guard.limit = 0
	}
	return nil
}

// rest makes every probe but the first. What may run beside others goes first, each attack outside and then under the
// executor; of a case that must be alone only the second half is left for later. The suite goes from quick cases to
// slow ones, so the pool begins at its end: the slow ones, which mostly wait, do not come last.
func (v *verification) rest(ctx context.Context, cases []executortest.Case) {
	var pool sync.WaitGroup
	free := make(chan struct{}, min(max(2*runtime.GOMAXPROCS(0), 4), 8))
	for i, c := range slices.Backward(cases[1:]) {
		p := &v.report.Probes[i+1]
		free <- struct{}{}
		pool.Go(func() {
			defer func() { <-free }()
			v.control(ctx, c, p)
			if !c.Alone {
				v.check(ctx, c, p)
			}
		})
	}
	pool.Wait()
	for i, c := range cases[1:] {
		if c.Alone {
			v.check(ctx, c, &v.report.Probes[i+1])
		}
	}
	v.again(ctx, cases)
}

// again repeats what had no verdict, one after the other: on a loaded machine an attack may not get to its start in
// time. Whoever has many of them has another problem. An attack that had an effect is
// never repeated here; the case itself repeats one whose result was only late.
func (v *verification) again(ctx context.Context, cases []executortest.Case) {
	const few = 4
	var open []int
	for i, p := range v.report.Probes {
		if p.Control == Inconclusive || p.Result == Inconclusive {
			open = append(open, i)
		}
	}
	if len(open) > few || v.guard.tripped() != nil {
		return
	}
	for _, i := range open {
		v.control(ctx, cases[i], &v.report.Probes[i])
		v.check(ctx, cases[i], &v.report.Probes[i])
	}
}

// control makes the attack where nothing holds it.
func (v *verification) control(ctx context.Context, c executortest.Case, p *Probe) {
	if c.Control == nil {
		p.Control, p.Detail = Evident, ""
		return
	}
	if err := v.made(ctx, p, c.Control); err == nil {
		p.Control, p.Detail = Broken, ""
	}
}

// check makes the attack under the executor, if it means anything.
func (v *verification) check(ctx context.Context, c executortest.Case, p *Probe) {
	if p.Control != Inconclusive {
		err := v.made(ctx, p, func(ctx context.Context) error { return c.Check(ctx, v.guard) })
		switch {
		case err == nil:
			p.Result = Held
		case errors.Is(err, executortest.ErrBreach):
			p.Result = Broken
		}
	}
	v.options.Logger.DebugContext(ctx, "probe", slog.Any("probe", *p))
}

// made makes half a probe and returns in time whatever happens. Only the error of the attack itself is returned with
// its type: what was cut short is not a breach, and nothing that it may have found counts.
func (v *verification) made(ctx context.Context, p *Probe, attack func(context.Context) error) error {
	start := time.Now()
	err := errors.Join(v.guard.tripped(), context.Cause(ctx))
	if err == nil {
		verdict, cut := called(ctx, abandonTime, func(ctx context.Context) (error, error) { return attack(ctx), nil })
		if err = verdict; cut != nil {
			err = fmt.Errorf("cut short: %w", cut)
		}
	} else {
		err = fmt.Errorf("not made: %w", err)
	}
	p.MS += float64(time.Since(start).Microseconds()) / 1000
	p.Detail = ""
	if err != nil {
		p.Detail = printable(err.Error())
	}
	return err
}

// printable bounds a text and leaves what can be shown in a terminal and in JSON.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
	if len(text) > detailSize {
		text = strings.ToValidUTF8(text[:detailSize], "") + "…"
	}
	return text
}
