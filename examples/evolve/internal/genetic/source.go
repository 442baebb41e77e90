// SPDX-License-Identifier: Apache-2.0

package genetic

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/token"
	"strconv"
)

// names of the operations in Go. min and max are builtins; the other functions stand beside the one that is evolved.
var names = [ops]string{
	Item: "item", Gap: "gap", Capacity: "capacity",
	Root: "root", Div: "div", Min: "min", Max: "max", Pick: "pick",
}

var tokens = [ops]token.Token{
	Neg: token.SUB, Add: token.ADD, Sub: token.SUB, Mul: token.MUL,
	Less: token.LSS, LessEq: token.LEQ, And: token.LAND, Or: token.LOR, Not: token.NOT,
}

// String is the expression in Go, on one line.
func (e Expr) String() string {
	if !e.valid(shapes[e.first()].kind) {
		return "invalid expression"
	}
	x, _ := e.ast()
	return print(x)
}

func (e Expr) first() Op {
	if len(e) == 0 || e[0].Op >= ops {
		return Const
	}
	return e[0].Op
}

// Body is the text between the braces of a Go function that returns the expression. Choices at the top become
// if statements, since a person is to read it.
func (e Expr) Body() string {
	block := &ast.BlockStmt{List: e.statements()}
	text := print(block)
	return text[1 : len(text)-1] // without the braces
}

func print(node any) string {
	var b bytes.Buffer
	if err := format.Node(&b, token.NewFileSet(), node); err != nil {
		return "invalid expression: " + err.Error()
	}
	return b.String()
}

func (e Expr) statements() []ast.Stmt {
	if e[0].Op != Pick {
		x, _ := e.ast()
		return []ast.Stmt{&ast.ReturnStmt{Results: []ast.Expr{x}}}
	}
	condition, rest := e[1:].ast()
	then, otherwise := rest[:rest.end(0)], rest[rest.end(0):]
	choice := &ast.IfStmt{Cond: condition, Body: &ast.BlockStmt{List: then.statements()}}
	return append([]ast.Stmt{choice}, otherwise.statements()...)
}

// ast is the first expression of e as a syntax tree, and what stands behind it.
func (e Expr) ast() (ast.Expr, Expr) {
	g, rest := e[0], e[1:]
	var args []ast.Expr
	for range shapes[g.Op].operands {
		var x ast.Expr
		x, rest = rest.ast()
		args = append(args, x)
	}
	switch g.Op {
	case Const:
		return literal(g.Value), rest
	case Item, Gap, Capacity:
		return ast.NewIdent(names[g.Op]), rest
	case Neg, Not:
		return &ast.UnaryExpr{Op: tokens[g.Op], X: args[0]}, rest
	case Root, Div, Min, Max, Pick:
		return &ast.CallExpr{Fun: ast.NewIdent(names[g.Op]), Args: args}, rest
	}
	return &ast.BinaryExpr{X: args[0], Op: tokens[g.Op], Y: args[1]}, rest
}

func literal(v float64) ast.Expr {
	if v < 0 {
		return &ast.UnaryExpr{Op: token.SUB, X: literal(-v)}
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	return &ast.BasicLit{Kind: token.FLOAT, Value: text}
}
