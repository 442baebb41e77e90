// SPDX-License-Identifier: Apache-2.0

package genetic

import (
	"math"
	"math/bits"

	"github.com/evoseal/containment/examples/evolve/internal/binpack"
)

// Screen packs instances by an expression without compiling it: it interprets the closed grammar of this package, for
// all items and gaps at once. It never sees anything that was not made by this package, so nothing is run here that
// would need to be contained.
type Screen struct {
	instances []binpack.Instance
	capacity  int
	start     []int // of the scores of an item, for the gaps from 0 to capacity-item
	item, gap []float64
	levels    [][]float64 // of the stack
	stack     [][]float64
}

// NewScreen prepares for instances of one capacity and scale 1.
func NewScreen(instances []binpack.Instance) *Screen {
	s := &Screen{instances: instances, capacity: instances[0].Capacity}
	present := make([]bool, s.capacity+1)
	for _, in := range instances {
		for _, item := range in.Items {
			present[item] = true
		}
	}
	s.start = make([]int, s.capacity+1)
	for item, ok := range present {
		if !ok {
			continue
		}
		s.start[item] = len(s.item)
		for gap := range s.capacity - item + 1 {
			s.item, s.gap = append(s.item, float64(item)), append(s.gap, float64(gap))
		}
	}
	return s
}

// clone shares what is constant, for another goroutine.
func (s *Screen) clone() *Screen {
	c := *s
	c.levels, c.stack = nil, nil
	return &c
}

// Bins is the number of bins that each instance takes; nil if the expression has a value that is no number.
func (s *Screen) Bins(e Expr) []int { return s.BinsBelow(e, math.Inf(1)) }

// hopeless is by how much, in per cent, the first quarter of the sample may be above the limit.
const hopeless = 1

// BinsBelow gives up, with nil, on an expression that is far above a limit of the excess, in per cent, after a quarter
// of the sample: most children of a search are, and packing is what takes the time.
func (s *Screen) BinsBelow(e Expr, limit float64) []int {
	scores := s.scores(e)
	for _, v := range scores {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	}
	bins := make([]int, len(s.instances))
	quarter := (len(s.instances) + 3) / 4
	for i := range s.instances {
		bins[i] = s.pack(&s.instances[i], scores)
		if i+1 == quarter && binpack.ExcessOf(s.instances[:quarter], bins) > limit+hopeless {
			return nil
		}
	}
	return bins
}

// pack counts the bins by the room that they have: bins with the same room are alike to every expression. Of equal
// scores the fuller bin wins, as in the program that variants are tested in.
func (s *Screen) pack(in *binpack.Instance, scores []float64) int {
	count := make([]int32, s.capacity+1)
	used := make([]uint64, s.capacity/64+1) // the rooms that some bin has
	open := 0
	for _, item := range in.Items {
		row := scores[s.start[item]:]
		room, best := s.capacity, row[s.capacity-item]
		for w := len(used) - 1; w >= item/64; w-- {
			word := used[w]
			if w == item/64 {
				word &= ^uint64(0) << (item % 64)
			}
			for word != 0 {
				top := 63 - bits.LeadingZeros64(word)
				word &^= 1 << top
				if r := w*64 + top; row[r-item] >= best {
					room, best = r, row[r-item]
				}
			}
		}
		if room == s.capacity {
			open++
		} else if count[room]--; count[room] == 0 {
			used[room/64] &^= 1 << (room % 64)
		}
		room -= item
		count[room]++
		used[room/64] |= 1 << (room % 64)
	}
	return open
}

// scores is the value of the expression for every item and gap. It works from the last node to the first, so that the
// operands of a node lie on top of the stack when it is met, the first on top. The result takes the place of the last
// operand, level by level, so nothing is allocated after the first expressions.
func (s *Screen) scores(e Expr) []float64 {
	stack := s.stack[:0]
	for i := len(e) - 1; i >= 0; i-- {
		n := len(shapes[e[i].Op].operands)
		level := len(stack) - n
		if level == len(s.levels) {
			s.levels = append(s.levels, make([]float64, len(s.item)))
		}
		out := s.levels[level]
		switch e[i].Op {
		case Item:
			out = s.item
		case Gap:
			out = s.gap
		default:
			s.apply(e[i], out, stack[level:])
		}
		stack = append(stack[:level], out)
	}
	s.stack = stack
	return stack[0]
}

// apply computes one node. The first operand is the last of args.
func (s *Screen) apply(g Gene, out []float64, args [][]float64) {
	switch len(args) {
	case 0:
		v := g.Value
		if g.Op == Capacity {
			v = float64(s.capacity)
		}
		for i := range out {
			out[i] = v
		}
	case 1:
		unary(g.Op, out, args[0])
	case 2:
		binary(g.Op, out, args[1], args[0])
	case 3:
		then, otherwise := args[1], args[0]
		for i, c := range args[2] {
			if c != 0 {
				out[i] = then[i]
			} else {
				out[i] = otherwise[i]
			}
		}
	}
}

func unary(op Op, out, a []float64) {
	switch op {
	case Neg:
		for i, v := range a {
			out[i] = -v
		}
	case Root:
		for i, v := range a {
			out[i] = math.Sqrt(math.Abs(v))
		}
	case Not:
		for i, v := range a {
			out[i] = 1 - v
		}
	}
}

func binary(op Op, out, a, b []float64) {
	b, out = b[:len(a)], out[:len(a)]
	switch op {
	case Add:
		for i, v := range a {
			out[i] = v + b[i]
		}
	case Sub:
		for i, v := range a {
			out[i] = v - b[i]
		}
	case Mul, And:
		for i, v := range a {
			out[i] = v * b[i]
		}
	case Div:
		for i, v := range a {
			out[i] = div(v, b[i])
		}
	case Min:
		for i, v := range a {
			out[i] = min(v, b[i])
		}
	case Max, Or:
		for i, v := range a {
			out[i] = max(v, b[i])
		}
	case Less:
		for i, v := range a {
			out[i] = truth(v < b[i])
		}
	case LessEq:
		for i, v := range a {
			out[i] = truth(v <= b[i])
		}
	}
}

func div(a, b float64) float64 {
	if math.Abs(b) < 1e-6 {
		return 1
	}
	return a / b
}

func truth(v bool) float64 {
	if v {
		return 1
	}
	return 0
}
