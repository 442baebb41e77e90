// SPDX-License-Identifier: Apache-2.0

package genetic

// Op is what one node of an expression does. The set is closed: whatever is made, mutated or read back consists of
// these, so an expression can neither loop nor call, index, allocate or fail.
type Op uint8

// The grammar. The names in Go are in source.go.
const (
	Const Op = iota
	Item
	Gap
	Capacity
	Neg
	Root // square root of the distance from zero
	Add
	Sub
	Mul
	Div // 1 where the divisor is next to 0
	Min
	Max
	Pick // condition, then, else
	Less
	LessEq
	And
	Or
	Not
	ops
)

// Kind is the type of a node in Go.
type Kind uint8

// The two types.
const (
	Number Kind = iota
	Truth
)

// shape is the type of an operation and of its operands.
type shape struct {
	kind     Kind
	operands []Kind
}

var shapes = [ops]shape{
	Const: {Number, nil}, Item: {Number, nil}, Gap: {Number, nil}, Capacity: {Number, nil},
	Neg: {Number, []Kind{Number}}, Root: {Number, []Kind{Number}},
	Add: {Number, []Kind{Number, Number}}, Sub: {Number, []Kind{Number, Number}}, Mul: {Number, []Kind{Number, Number}},
	Div: {Number, []Kind{Number, Number}}, Min: {Number, []Kind{Number, Number}}, Max: {Number, []Kind{Number, Number}},
	Pick: {Number, []Kind{Truth, Number, Number}},
	Less: {Truth, []Kind{Number, Number}}, LessEq: {Truth, []Kind{Number, Number}},
	And: {Truth, []Kind{Truth, Truth}}, Or: {Truth, []Kind{Truth, Truth}}, Not: {Truth, []Kind{Truth}},
}

// Gene is one node.
type Gene struct {
	Op    Op
	Value float64 // of a Const; otherwise 0
}

// Expr is an expression in prefix order: a node, then its operands. It is never changed once it is made.
type Expr []Gene

// What an expression may be at most. A person should be able to read what comes out.
const (
	MaxNodes = 60
	MaxDepth = 14
)

// end is the index behind the subtree that begins at i.
func (e Expr) end(i int) int {
	for open := 1; open > 0; i++ {
		open += len(shapes[e[i].Op].operands) - 1
	}
	return i
}

// depth is the number of levels.
func (e Expr) depth() int {
	deepest := 0
	var open []int // operands that are missing on each level
	for _, g := range e {
		deepest = max(deepest, len(open)+1)
		if len(open) > 0 {
			open[len(open)-1]--
		}
		if n := len(shapes[g.Op].operands); n > 0 {
			open = append(open, n)
		}
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
	}
	return deepest
}

// valid reports whether this is one whole expression of the kind within the limits.
func (e Expr) valid(kind Kind) bool {
	if len(e) == 0 || len(e) > MaxNodes {
		return false
	}
	wanted := []Kind{kind}
	for _, g := range e {
		if len(wanted) == 0 || g.Op >= ops || shapes[g.Op].kind != wanted[len(wanted)-1] {
			return false
		}
		wanted = wanted[:len(wanted)-1]
		operands := shapes[g.Op].operands
		for i := len(operands) - 1; i >= 0; i-- {
			wanted = append(wanted, operands[i])
		}
	}
	return len(wanted) == 0 && e.depth() <= MaxDepth
}

// splice puts other in the place of the subtree at i.
func (e Expr) splice(i int, other Expr) Expr {
	end := e.end(i)
	made := make(Expr, 0, len(e)-(end-i)+len(other))
	made = append(made, e[:i]...)
	made = append(made, other...)
	return append(made, e[end:]...)
}
