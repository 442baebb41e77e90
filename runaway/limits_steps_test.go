// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/evoseal/containment/runaway"
)

// repeat ends n iterations with an outcome, and restarts before the last one.
func repeat(n int, outcome func(n int) runaway.Outcome) func(*testing.T, *runaway.Governor,
	func() *runaway.Governor) error {
	return func(t *testing.T, g *runaway.Governor, restart func() *runaway.Governor) error {
		for i := 1; i <= n; i++ {
			if i == n {
				g = restart()
			}
			it, err := g.Begin(t.Context(), runaway.Estimate{})
			if err != nil {
				return err
			}
			if err := it.End(outcome(i)); err != nil {
				return err
			}
		}
		_, err := g.Begin(t.Context(), runaway.Estimate{})
		return err
	}
}

// pay spends in two iterations with a restart and some time in between.
func pay(u runaway.Usage, wait time.Duration) func(*testing.T, *runaway.Governor, func() *runaway.Governor) error {
	return func(t *testing.T, g *runaway.Governor, restart func() *runaway.Governor) error {
		for i := range 2 {
			it, err := g.Begin(t.Context(), runaway.Estimate{Tokens: 1, Cost: 1, Calls: 1, CPU: 1})
			if err != nil {
				return err
			}
			if err := it.Spend(u); err != nil {
				_ = it.End(fresh(i))
				return err
			}
			if err := it.End(fresh(i)); err != nil {
				return err
			}
			if i == 0 {
				time.Sleep(wait)
				g = restart()
			}
		}
		return nil
	}
}

// age lets time pass in two sessions, with an iteration in each.
func age(part time.Duration) func(*testing.T, *runaway.Governor, func() *runaway.Governor) error {
	return func(t *testing.T, g *runaway.Governor, restart func() *runaway.Governor) error {
		for i := range 2 {
			it, err := g.Begin(t.Context(), runaway.Estimate{})
			if err != nil {
				return err
			}
			time.Sleep(part)
			if err := it.End(fresh(i)); err != nil {
				return err
			}
			g = restart()
		}
		_, err := g.Begin(t.Context(), runaway.Estimate{})
		return err
	}
}

func scores(step float64) func(n int) runaway.Outcome {
	return func(n int) runaway.Outcome {
		return runaway.Outcome{Kind: runaway.Accepted, Head: print(n), Scored: true, Score: step * float64(n)}
	}
}

// other lifts all budgets but the one that is set.
func other(u runaway.Usage) runaway.Usage {
	v, f := reflect.ValueOf(&u).Elem(), reflect.ValueOf(free)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			v.Field(i).Set(f.Field(i))
		}
	}
	return u
}

// mostlyFailing accepts something new every so many iterations, so that the streak stays short.
func mostlyFailing(every int) func(int) runaway.Outcome {
	return func(n int) runaway.Outcome {
		if n%every == 0 {
			return fresh(n)
		}
		return rejected
	}
}

func classFailing(n int) runaway.Outcome {
	if n == 3 {
		return fresh(n) // does not end the row
	}
	return runaway.Outcome{Kind: runaway.Failed, Class: "import error"}
}

func duplicates(n int) runaway.Outcome {
	if n == 3 {
		return fresh(n)
	}
	return runaway.Outcome{Kind: runaway.Duplicate}
}

func period(k int) func(int) runaway.Outcome {
	return func(n int) runaway.Outcome { return fresh(n % k) }
}

var errTwo = errors.New("two iterations are open, and one waits")

// crowd begins iterations until one has to wait.
func crowd(t *testing.T, _ *runaway.Governor, restart func() *runaway.Governor) error {
	g := restart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for n := 0; ; n++ {
		it, err := g.Begin(ctx, runaway.Estimate{})
		switch {
		case errors.Is(err, context.DeadlineExceeded) && n == 2:
			return errTwo
		case err != nil:
			return err
		}
		defer func() { _ = it.End(accepted) }()
	}
}

// nest makes children in children.
func nest(levels int) func(*testing.T, *runaway.Governor, func() *runaway.Governor) error {
	return func(t *testing.T, _ *runaway.Governor, restart func() *runaway.Governor) error {
		g := restart()
		for range levels {
			it, err := g.Begin(t.Context(), runaway.Estimate{})
			if err != nil {
				return err
			}
			defer func() { _ = it.End(accepted) }()
			if g, err = it.Child(t.Context(), "inner", runaway.Limits{}); err != nil {
				return err
			}
		}
		return nil
	}
}
