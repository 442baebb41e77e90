// SPDX-License-Identifier: Apache-2.0

package genetic

import (
	"math"
	"math/rand/v2"
)

// breeder makes expressions out of others. All chance comes from its generator.
type breeder struct {
	random   *rand.Rand
	capacity float64
}

var (
	leaves     = []Op{Const, Const, Item, Gap, Gap, Capacity}
	inner      = []Op{Add, Sub, Mul, Div, Min, Max, Neg, Root, Pick, Pick, Pick}
	conditions = []Op{Less, Less, LessEq, LessEq, And, Or, Not}
	// alike are operations that a point mutation may exchange.
	alike = [][]Op{{Item, Gap, Capacity}, {Neg, Root}, {Add, Sub, Mul, Div, Min, Max}, {Less, LessEq}, {And, Or}}
)

func (b *breeder) one(from []Op) Op { return from[b.random.IntN(len(from))] }

// grow makes a new expression with at most depth levels.
func (b *breeder) grow(kind Kind, depth int) Expr {
	var op Op
	switch {
	case kind == Truth && depth <= 2:
		op = b.one([]Op{Less, LessEq})
	case kind == Truth:
		op = b.one(conditions)
	case depth <= 1 || b.random.Float64() < 0.3:
		op = b.one(leaves)
	case depth <= 2:
		op = b.one(inner[:8])
	default:
		op = b.one(inner)
	}
	if op == Const {
		return Expr{{Const, b.constant()}}
	}
	made := Expr{{Op: op}}
	for _, k := range shapes[op].operands {
		made = append(made, b.grow(k, depth-1)...)
	}
	return made
}

// constant is a number of one of the sizes that matter: small, of the order of an item, or a factor.
func (b *breeder) constant() float64 {
	switch b.random.IntN(4) {
	case 0:
		return float64(b.random.IntN(10))
	case 1, 2:
		return float64(b.random.IntN(int(b.capacity)))
	}
	return short(4*b.random.Float64() - 2)
}

// short rounds to three digits, so that sources stay readable and the same number is met again.
func short(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	unit := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	if v = math.Round(v*unit) / unit; math.Abs(v) > 1e6 || math.Abs(v) < 1e-6 {
		return 0
	}
	return v
}

// child makes one expression of two parents. It always answers with a valid one: if what chance proposes is too large,
// it tries again, and in the end returns the first parent.
func (b *breeder) child(mother, father Expr) Expr {
	for range 20 {
		made := mother
		switch p := b.random.Float64(); {
		case p < 0.30:
			made = b.cross(mother, father)
		case p < 0.55:
			made = b.tune(mother)
		case p < 0.67:
			made = b.point(mother)
		case p < 0.80:
			i := b.random.IntN(len(mother))
			made = mother.splice(i, b.grow(shapes[mother[i].Op].kind, 1+b.random.IntN(4)))
		case p < 0.90:
			made = b.wrap(mother)
		default:
			made = b.hoist(mother)
		}
		if b.random.Float64() < 0.3 {
			made = b.tune(made)
		}
		if made = made.fold(); made.valid(Number) && !same(made, mother) {
			return made
		}
	}
	return mother
}

func same(a, b Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// at picks a random node that satisfies ok, or -1.
func (b *breeder) at(e Expr, ok func(i int) bool) int {
	found, seen := -1, 0
	for i := range e {
		if ok(i) {
			if seen++; b.random.IntN(seen) == 0 {
				found = i
			}
		}
	}
	return found
}

// cross puts a subtree of the father in the place of one of the mother's of the same type.
func (b *breeder) cross(mother, father Expr) Expr {
	i := b.random.IntN(len(mother))
	j := b.at(father, func(j int) bool { return shapes[father[j].Op].kind == shapes[mother[i].Op].kind })
	if j < 0 {
		return mother
	}
	return mother.splice(i, father[j:father.end(j)])
}

// tune moves one constant, by a step or by a factor.
func (b *breeder) tune(e Expr) Expr {
	i := b.at(e, func(i int) bool { return e[i].Op == Const })
	if i < 0 {
		return e
	}
	v := e[i].Value
	switch b.random.IntN(5) {
	case 0:
		v = b.constant()
	case 1:
		v *= math.Exp(0.3 * b.random.NormFloat64())
	case 2:
		v += b.random.NormFloat64()
	case 3:
		v++
	case 4:
		v--
	}
	return e.splice(i, Expr{{Const, short(v)}})
}

// point exchanges one operation for a similar one.
func (b *breeder) point(e Expr) Expr {
	i := b.random.IntN(len(e))
	for _, group := range alike {
		for _, op := range group {
			if op == e[i].Op {
				made := append(Expr(nil), e...)
				made[i].Op = b.one(group)
				return made
			}
		}
	}
	return e
}

// wrap puts a new operation above a node, which becomes one of its operands.
func (b *breeder) wrap(e Expr) Expr {
	i := b.random.IntN(len(e))
	kind := shapes[e[i].Op].kind
	op := b.one(inner)
	if kind == Truth {
		op = b.one([]Op{And, Or, Not})
	}
	operands := shapes[op].operands
	place := b.at(e[:min(len(e), len(operands))], func(j int) bool { return operands[j] == kind })
	if place < 0 {
		return e
	}
	made := Expr{{Op: op}}
	for j, k := range operands {
		if j == place {
			made = append(made, e[i:e.end(i)]...)
		} else {
			made = append(made, b.grow(k, 2)...)
		}
	}
	return e.splice(i, made)
}

// hoist puts a subtree in the place of one that holds it.
func (b *breeder) hoist(e Expr) Expr {
	i := b.random.IntN(len(e))
	end := e.end(i)
	j := b.at(e, func(j int) bool { return j > i && j < end && shapes[e[j].Op].kind == shapes[e[i].Op].kind })
	if j < 0 {
		return e
	}
	return e.splice(i, e[j:e.end(j)])
}
