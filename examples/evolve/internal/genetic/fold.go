// SPDX-License-Identifier: Apache-2.0

package genetic

import "slices"

// fold computes what is constant and takes double signs away. The compiler would compute constants exactly and the
// interpreter in floating point; without them both say the same. It also keeps sources short.
func (e Expr) fold() Expr {
	var folded Expr // of the operands so far, each a whole expression; built from the end
	for i := len(e) - 1; i >= 0; i-- {
		folded = slices.Insert(folded, 0, e[i])
		folded = folded.head()
	}
	return folded
}

// head folds the first node. What is behind its own subtree stays.
func (e Expr) head() Expr {
	operands := shapes[e[0].Op].operands
	constant := len(operands) > 0
	var values [3]float64
	for i := range operands {
		if 1+i >= len(e) || e[1+i].Op != Const {
			constant = false
			break
		}
		values[i] = e[1+i].Value
	}
	switch {
	case e[0].Op == Neg && e[1].Op == Neg:
		return e[2:]
	case !constant || shapes[e[0].Op].kind == Truth:
		return e
	}
	a, b, out := values[:1], values[1:2], make([]float64, 1)
	if len(operands) == 1 {
		unary(e[0].Op, out, a)
	} else {
		binary(e[0].Op, out, a, b)
	}
	return slices.Replace(e, 0, 1+len(operands), Gene{Const, short(out[0])})
}
