// SPDX-License-Identifier: Apache-2.0

package genetic

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/examples/evolve/internal/binpack"
)

func bestFit(t *testing.T) Expr {
	t.Helper()
	e, err := Parse("-gap")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// value interprets one node at a time: slow, and so plain that it can be believed.
func value(e Expr, item, gap, capacity float64) (float64, Expr) {
	g, rest := e[0], e[1:]
	var a [3]float64
	for i := range shapes[g.Op].operands {
		a[i], rest = value(rest, item, gap, capacity)
	}
	v := map[Op]float64{
		Const: g.Value, Item: item, Gap: gap, Capacity: capacity,
		Neg: -a[0], Root: math.Sqrt(math.Abs(a[0])), Not: 1 - a[0],
		Add: a[0] + a[1], Sub: a[0] - a[1], Mul: a[0] * a[1], Div: div(a[0], a[1]), Min: math.Min(a[0], a[1]), Max: math.Max(a[0], a[1]),
		Less: truth(a[0] < a[1]), LessEq: truth(a[0] <= a[1]), And: a[0] * a[1], Or: math.Max(a[0], a[1]),
		Pick: a[2],
	}[g.Op]
	if g.Op == Pick && a[0] != 0 {
		v = a[1]
	}
	return v, rest
}

// naive packs bin by bin, as the documentation of the evolved function says it.
func naive(in *binpack.Instance, e Expr) int {
	var room []int
	for _, item := range in.Items {
		score := func(room int) float64 {
			v, _ := value(e, float64(item), float64(room-item), float64(in.Capacity))
			return v
		}
		best, bin := score(in.Capacity), -1
		free := in.Capacity
		for i, r := range room {
			if r < item {
				continue
			}
			if v := score(r); v > best || v == best && r < free {
				best, bin, free = v, i, r
			}
		}
		if bin < 0 {
			room, bin = append(room, in.Capacity), len(room)
		}
		room[bin] -= item
	}
	return len(room)
}

// The interpreter that works on all items at once packs like the naive one.
func TestScreen(t *testing.T) {
	t.Parallel()
	for _, p := range []binpack.Problem{binpack.Uniform, binpack.Weibull} {
		instances := p.Generate(1, 2, 60)
		screen := NewScreen(instances)
		b := &breeder{rand.New(rand.NewPCG(3, 4)), float64(p.Capacity())}
		parents := []Expr{bestFit(t)}
		for range 60 {
			e := b.child(parents[b.random.IntN(len(parents))], b.grow(Number, 5))
			parents = append(parents, e)
			want := []int{naive(&instances[0], e), naive(&instances[1], e)}
			if got := screen.Bins(e); got != nil && cmp.Diff(want, got) != "" {
				t.Fatalf("%v, %s: %s", p, e, cmp.Diff(want, got))
			}
		}
	}
}

// Where the run begins is best fit.
func TestBestFit(t *testing.T) {
	t.Parallel()
	for _, p := range []binpack.Problem{binpack.Uniform, binpack.Weibull} {
		instances := p.Generate(2, 3, 500)
		var want []int
		for i := range instances {
			want = append(want, binpack.Bins(binpack.BestFit(&instances[i])))
		}
		if diff := cmp.Diff(want, NewScreen(instances).Bins(bestFit(t))); diff != "" {
			t.Errorf("%v: %s", p, diff)
		}
	}
}

// propose runs a search against a judge that packs by the interpreter, and returns what was proposed.
func propose(t *testing.T, s *Search, n int) (proposed []string) {
	t.Helper()
	instances := binpack.Uniform.Generate(99, 10, 200)
	judge := NewScreen(instances)
	best := binpack.ExcessOf(instances, judge.Bins(bestFit(t)))
	for range n {
		e, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		proposed = append(proposed, e.String())
		bins := judge.Bins(e)
		if bins == nil {
			continue
		}
		excess := binpack.ExcessOf(instances, bins)
		s.Told(e, excess)
		if excess < best {
			best = excess
			s.Kept(e)
			s.Kept(e) // saying it twice changes nothing
		}
	}
	return proposed
}

// The same seed gives the same search, also if it is interrupted and goes on from its snapshot, and never the same
// proposal twice.
func TestReproducible(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{
		{Seed: 5, Problem: binpack.Uniform, Screen: 8, Population: 30, Renew: 4},
		{Seed: 5, Problem: binpack.Uniform, Screen: 0, Population: 30},
	} {
		want := propose(t, New(c, bestFit(t)), 12)
		seen := map[string]bool{}
		for _, e := range want {
			if seen[e] {
				t.Errorf("%s was proposed twice", e)
			}
			seen[e] = true
		}
		first := New(c, bestFit(t))
		got := propose(t, first, 5)
		snapshot, err := first.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		second, err := Restore(c, snapshot)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := second.Snapshot(); err != nil || cmp.Diff(string(snapshot), string(again)) != "" {
			t.Error(err, cmp.Diff(string(snapshot), string(again)))
		}
		// The judge of propose begins anew, so both halves are compared with a search that was interrupted alike.
		rest := propose(t, second, 7)
		if diff := cmp.Diff(propose(t, first, 7), rest); diff != "" {
			t.Errorf("screen %d: %s", c.Screen, diff)
		}
		if diff := cmp.Diff(want[:5], got); diff != "" {
			t.Errorf("screen %d: %s", c.Screen, diff)
		}
		c.Seed++
		if cmp.Equal(want, propose(t, New(c, bestFit(t)), 12)) {
			t.Error("another seed proposed the same")
		}
	}
}

// It is a search: within a few dozen proposals it is better than best fit, on instances that it never saw.
func TestBetterThanBestFit(t *testing.T) {
	t.Parallel()
	s := New(Config{Seed: 1, Problem: binpack.Uniform, Screen: 60}, bestFit(t))
	held := binpack.Uniform.Generate(12345, 10, 500)
	judge := NewScreen(held)
	start := binpack.ExcessOf(held, judge.Bins(bestFit(t)))
	best := math.Inf(1)
	for range 10 {
		e, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if bins := judge.Bins(e); bins != nil {
			best = min(best, binpack.ExcessOf(held, bins))
		}
	}
	if best > start-0.5 {
		t.Errorf("best fit %.2f %%, best found %.2f %%", start, best)
	}
	if s.Screened() < 600 || s.Asked() != 10 {
		t.Errorf("screened %d, asked %d", s.Screened(), s.Asked())
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := New(Config{Problem: binpack.Uniform, Screen: 10}, bestFit(t))
	if e, err := s.Next(ctx); e != nil || !errors.Is(err, context.Canceled) {
		t.Error(e, err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	c := Config{Seed: 5, Problem: binpack.Uniform, Screen: 20, Population: 30}
	s := New(c, bestFit(t))
	propose(t, s, 1)
	good, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	other := c
	other.Seed++
	if _, err := Restore(other, good); !errors.Is(err, ErrState) {
		t.Error("another seed:", err)
	}
	for _, change := range []func(*state){
		func(s *state) { s.Fame = nil },
		func(s *state) { s.Fame[0] = "os.Exit(1)" },
		func(s *state) { s.Fame = append(s.Fame, "gap <") },
		func(s *state) { s.Living[0].Expr = "func() float64 { return 1 }()" },
		func(s *state) { s.Living = append(s.Living, make([]memberState, 30)...) },
		func(s *state) { s.Asks = -1 },
		func(s *state) { s.Chance = s.Chance[:4] },
	} {
		var st state
		if err := json.Unmarshal(good, &st); err != nil {
			t.Fatal(err)
		}
		change(&st)
		bad, err := json.Marshal(st)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := Restore(c, bad); s != nil || !errors.Is(err, ErrState) {
			t.Errorf("%.300s: %v", bad, err)
		}
	}
	if _, err := Restore(c, []byte(strings.Repeat("x", 10))); !errors.Is(err, ErrState) {
		t.Error(err)
	}
}
