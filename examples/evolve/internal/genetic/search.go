// SPDX-License-Identifier: Apache-2.0

package genetic

import (
	"cmp"
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/evoseal/containment/examples/evolve/internal/binpack"
)

// Config says what is searched for and how. The same values give the same expressions, on any number of processors.
type Config struct {
	Seed    uint64
	Problem binpack.Problem
	// Screen is how many candidates are bred and interpreted for each variant that is proposed; 0: none, each child is
	// proposed as it is born and only what Told says counts.
	Screen int
	// Population is how many expressions live at one time; 0: 200.
	Population int
	// Renew is after how many variants the instances of the screening are drawn anew, so that nothing is learnt by heart;
	// 0: 50.
	Renew int
}

// The screening sample: large enough to tell candidates apart, small enough for a millisecond each.
const (
	uniformInstances, uniformItems = 20, 500
	weibullInstances, weibullItems = 4, 5000
	batch                          = 50    // candidates that are interpreted at the same time
	parsimony                      = 0.002 // per cent of excess that one node must be worth
)

// Search is a steady-state genetic program: parents are chosen and victims found by tournament, and of expressions that
// pack the sample alike only the shortest lives. It is not safe for concurrent use.
type Search struct {
	c      Config
	source *rand.PCG
	b      *breeder

	living   []member
	asked    map[uint64]bool // proposed before
	asks     int
	fame     []Expr // what was kept, the newest last: still parents when nothing else remembers them
	screens  []*Screen
	screened int
}

type member struct {
	expr    Expr
	fitness float64 // excess in per cent, plus what its length costs
	key     uint64  // of how it packs
}

// New begins a search with one expression, which counts as accepted.
func New(c Config, first Expr) *Search {
	if c.Population <= 0 {
		c.Population = 200
	}
	if c.Renew <= 0 {
		c.Renew = 50
	}
	s := &Search{c: c, source: rand.NewPCG(c.Seed, 0x62696e7061636b), asked: map[uint64]bool{}, fame: []Expr{first}}
	s.b = &breeder{random: rand.New(s.source), capacity: float64(c.Problem.Capacity())}
	s.asked[sum(first.String())] = true
	return s
}

// Screened is how many candidates were interpreted so far.
func (s *Search) Screened() int { return s.screened }

// Asked is how many were proposed.
func (s *Search) Asked() int { return s.asks }

// Next proposes an expression that it has not proposed before.
func (s *Search) Next(ctx context.Context) (Expr, error) {
	if s.c.Screen == 0 {
		s.asks++
		return s.unscreened(), nil
	}
	if s.asks%s.c.Renew == 0 {
		s.renew()
	} else if s.screens == nil { // restored
		s.prepare()
	}
	s.asks++
	for left := s.c.Screen; left > 0; left -= batch {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		s.round(min(left, batch))
	}
	var best *member
	for i := range s.living {
		m := &s.living[i]
		if (best == nil || m.fitness < best.fitness) && !s.asked[sum(m.expr.String())] {
			best = m
		}
	}
	if best == nil {
		return s.unscreened(), nil
	}
	s.asked[sum(best.expr.String())] = true
	return best.expr, nil
}

// unscreened is a child that nobody has looked at.
func (s *Search) unscreened() Expr {
	for {
		e := s.bear()
		if key := sum(e.String()); !s.asked[key] {
			s.asked[key] = true
			return e
		}
	}
}

// Told says what was measured of a proposal. Without screening it is all that the search goes by.
func (s *Search) Told(e Expr, excess float64) {
	if s.c.Screen == 0 {
		s.admit(member{e, excess + parsimony*float64(len(e)), sum(e.String())})
	}
}

// Kept says which expression is the accepted one. It stays a parent, whatever becomes of the living.
func (s *Search) Kept(e Expr) {
	if !same(e, s.fame[len(s.fame)-1]) {
		s.fame = append(s.fame, e)
	}
}

// bear makes one child of the living. While they are few it is a new expression, and later rarely so.
func (s *Search) bear() Expr {
	for {
		var e Expr
		if chance := s.b.random.Float64(); chance < 0.02 || len(s.living) < s.c.Population/10 && chance < 0.5 {
			e = s.b.grow(Number, 5).fold()
		} else {
			e = s.b.child(s.parent(), s.parent())
		}
		if e.valid(Number) {
			return e
		}
	}
}

func (s *Search) parent() Expr {
	if len(s.living) == 0 || s.b.random.Float64() < 0.05 {
		return s.fame[s.b.random.IntN(len(s.fame))]
	}
	best := s.b.random.IntN(len(s.living))
	for range 3 {
		if i := s.b.random.IntN(len(s.living)); s.living[i].fitness < s.living[best].fitness {
			best = i
		}
	}
	return s.living[best].expr
}

// round breeds, interprets on all processors, and admits in the order of birth.
func (s *Search) round(n int) {
	children := make([]Expr, n)
	for i := range children {
		children[i] = s.bear()
	}
	for i, m := range s.measure(children, s.limit()) {
		if m != nil {
			m.expr = children[i]
			s.admit(*m)
		}
	}
}

// limit is what a child must be near to, to have a chance to live.
func (s *Search) limit() float64 {
	if len(s.living) < s.c.Population {
		return math.Inf(1)
	}
	return slices.MaxFunc(s.living, func(a, b member) int { return cmp.Compare(a.fitness, b.fitness) }).fitness
}

func (s *Search) measure(all []Expr, limit float64) []*member {
	s.screened += len(all)
	measured := make([]*member, len(all))
	var wg sync.WaitGroup
	for w, screen := range s.screens {
		wg.Go(func() {
			for i := w; i < len(all); i += len(s.screens) {
				bins := screen.BinsBelow(all[i], limit)
				if bins == nil {
					continue
				}
				excess := binpack.ExcessOf(screen.instances, bins)
				measured[i] = &member{fitness: excess + parsimony*float64(len(all[i])), key: behaviour(bins)}
			}
		})
	}
	wg.Wait()
	return measured
}

// admit lets a member live if there is room, if it is the shorter of two that do the same, or if it is better than the
// worst of a few.
func (s *Search) admit(m member) {
	for i := range s.living {
		if s.living[i].key == m.key {
			if m.fitness < s.living[i].fitness {
				s.living[i] = m
			}
			return
		}
	}
	if len(s.living) < s.c.Population {
		s.living = append(s.living, m)
		return
	}
	worst := s.b.random.IntN(len(s.living))
	for range 4 {
		if i := s.b.random.IntN(len(s.living)); s.living[i].fitness > s.living[worst].fitness {
			worst = i
		}
	}
	if m.fitness < s.living[worst].fitness {
		s.living[worst] = m
	}
}

// renew draws another sample and measures the living by it.
func (s *Search) renew() {
	s.prepare()
	before := s.living
	s.living = nil
	all := []Expr{s.fame[len(s.fame)-1]}
	for _, m := range before {
		all = append(all, m.expr)
	}
	for i, m := range s.measure(all, math.Inf(1)) {
		if m != nil {
			m.expr = all[i]
			s.admit(*m)
		}
	}
}

// prepare makes the sample that belongs to the number of proposals so far.
func (s *Search) prepare() {
	n, items := uniformInstances, uniformItems
	if s.c.Problem == binpack.Weibull {
		n, items = weibullInstances, weibullItems
	}
	epoch := uint64(s.asks / s.c.Renew)
	first := NewScreen(s.c.Problem.Generate(s.c.Seed<<20+1000+epoch, n, items))
	s.screens = []*Screen{first}
	for range runtime.GOMAXPROCS(0) - 1 {
		s.screens = append(s.screens, first.clone())
	}
}

func sum(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

func behaviour(bins []int) uint64 {
	h := fnv.New64a()
	for _, n := range bins {
		h.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	}
	return h.Sum64()
}
