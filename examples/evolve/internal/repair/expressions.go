// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"go/ast"
	"go/token"
	"go/types"
	"math/big"
	"strings"
)

// The costs say how likely a mistake is, 0 the most: where several are possible in one place, they are tried in this order.
const (
	likely = iota
	common
	plausible
	occasional
	rare
	exotic
	last
)

// others lists for each operator what it is mistaken for, the likeliest first.
var others = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GTR, token.GEQ, token.NEQ}, token.LEQ: {token.LSS, token.GEQ, token.GTR, token.EQL},
	token.GTR: {token.GEQ, token.LSS, token.LEQ, token.NEQ}, token.GEQ: {token.GTR, token.LEQ, token.LSS, token.EQL},
	token.EQL: {token.NEQ, token.GEQ, token.LEQ}, token.NEQ: {token.EQL, token.LSS, token.GTR},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB, token.MUL}, token.SUB: {token.ADD}, token.MUL: {token.QUO, token.ADD},
	token.QUO: {token.MUL, token.REM}, token.REM: {token.QUO, token.MUL},
	token.AND: {token.OR, token.AND_NOT}, token.OR: {token.AND, token.XOR}, token.XOR: {token.OR, token.AND},
	token.SHL: {token.SHR}, token.SHR: {token.SHL}, token.AND_NOT: {token.AND},
	token.ADD_ASSIGN: {token.SUB_ASSIGN, token.ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN, token.ASSIGN},
	token.MUL_ASSIGN: {token.QUO_ASSIGN, token.ADD_ASSIGN}, token.QUO_ASSIGN: {token.MUL_ASSIGN},
	token.REM_ASSIGN: {token.QUO_ASSIGN}, token.OR_ASSIGN: {token.AND_ASSIGN, token.XOR_ASSIGN, token.ASSIGN},
	token.AND_ASSIGN: {token.OR_ASSIGN, token.AND_NOT_ASSIGN}, token.XOR_ASSIGN: {token.OR_ASSIGN},
	token.AND_NOT_ASSIGN: {token.AND_ASSIGN}, token.SHL_ASSIGN: {token.SHR_ASSIGN}, token.SHR_ASSIGN: {token.SHL_ASSIGN},
}

func (c *collector) binary(n *ast.BinaryExpr) {
	kind, first := "arithmetic", common
	switch n.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ:
		kind, first = "comparison", likely
	case token.LAND, token.LOR:
		kind, first = "boolean", likely
	}
	for i, op := range others[n.Op] {
		cost := first
		if i > 0 {
			cost += 1 + i
		}
		c.token(n.OpPos, n.Op, op, kind, min(cost, last))
	}
	switch n.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		c.offByOne(n.Y, "bound", plausible)
		c.offByOne(n.X, "bound", rare)
	case token.LAND, token.LOR:
		c.replace(n, c.text(n.X), "drop an operand", plausible)
		c.replace(n, c.text(n.Y), "drop an operand", plausible)
	case token.ADD, token.SUB:
		c.replace(n, c.text(n.X), "drop an operand", plausible)
		if n.Op == token.SUB {
			c.replace(n, c.text(n.Y)+" - ("+c.text(n.X)+")", "swap operands", occasional)
		}
	case token.QUO, token.REM, token.SHL, token.SHR, token.MUL:
		c.replace(n, c.text(n.X), "drop an operand", rare)
	}
}

func (c *collector) unary(n *ast.UnaryExpr) {
	switch n.Op {
	case token.NOT:
		c.replace(n, c.text(n.X), "negation", likely)
	case token.SUB, token.XOR:
		c.replace(n, c.text(n.X), "sign", common)
	}
}

// condition negates what a swapped comparison does not.
func (c *collector) condition(e ast.Expr) {
	switch x := ast.Unparen(e).(type) {
	case nil:
		return
	case *ast.BinaryExpr:
		if x.Op == token.LAND || x.Op == token.LOR {
			c.replace(e, "!("+c.text(e)+")", "negation", common)
		}
	case *ast.UnaryExpr:
	default:
		c.replace(e, "!"+c.text(e), "negation", likely)
	}
}

// literal moves integers by one.
func (c *collector) literal(n *ast.BasicLit) {
	value, ok := new(big.Int).SetString(strings.ReplaceAll(n.Value, "_", ""), 0)
	if n.Kind != token.INT || !ok {
		return
	}
	if _, imported := c.parent().(*ast.ImportSpec); imported {
		return
	}
	one := big.NewInt(1)
	more, less := new(big.Int).Add(value, one), new(big.Int).Sub(value, one)
	c.replace(n, more.String(), "constant", common)
	if less.Sign() < 0 {
		c.replace(n, less.String(), "constant", plausible)
	} else {
		c.replace(n, less.String(), "constant", common)
	}
	if value.Sign() != 0 && value.CmpAbs(one) != 0 {
		c.replace(n, "0", "constant", rare)
		c.replace(n, new(big.Int).Mul(value, big.NewInt(2)).String(), "constant", exotic)
	}
}

// offByOne adds and subtracts one. Literals move by themselves.
func (c *collector) offByOne(e ast.Expr, kind string, cost int) {
	if e == nil {
		return
	}
	if _, ok := e.(*ast.BasicLit); ok {
		return
	}
	if t := c.typeOf(e); t != nil && !c.isKind(e, types.IsInteger) {
		return
	}
	text := c.text(e)
	if _, ok := e.(*ast.BinaryExpr); ok {
		text = "(" + text + ")"
	}
	c.replace(e, text+"-1", kind, cost)
	c.replace(e, text+"+1", kind, cost)
}

func (c *collector) slice(n *ast.SliceExpr) {
	c.offByOne(n.Low, "slice", plausible)
	c.offByOne(n.High, "slice", plausible)
	if n.Slice3 {
		return
	}
	if n.Low != nil {
		c.replace(n.Low, "", "slice", occasional)
	}
	if n.High != nil {
		c.replace(n.High, "", "slice", occasional)
	}
}

// ranges swaps the key and the value.
func (c *collector) ranges(n *ast.RangeStmt) {
	switch {
	case n.Key == nil || n.Tok != token.DEFINE:
	case n.Value == nil:
		c.replace(n.Key, "_, "+c.text(n.Key), "range", rare)
	case c.text(n.Key) == "_":
		c.add(n.Key.Pos(), n.Value.End(), c.text(n.Value), "range", rare)
	default:
		c.add(n.Key.Pos(), n.Value.End(), c.text(n.Value)+", "+c.text(n.Key), "range", rare)
	}
}
