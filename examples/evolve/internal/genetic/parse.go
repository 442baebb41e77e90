// SPDX-License-Identifier: Apache-2.0

package genetic

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
)

// ErrGrammar matches every source that says more than the grammar can.
var ErrGrammar = errors.New("genetic: not an expression of the closed grammar")

// Parse reads an expression that String wrote.
func Parse(text string) (Expr, error) {
	x, err := parser.ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGrammar, err)
	}
	return checked(read(x))
}

// ParseFunc finds a function in a Go file and reads the expression that it returns, as Body wrote it. The source is
// only read: nothing that is outside of the grammar ever becomes an Expr.
func ParseFunc(source []byte, function string) (Expr, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGrammar, err)
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == function && f.Body != nil {
			return checked(readBlock(f.Body.List))
		}
	}
	return nil, fmt.Errorf("%w: there is no function %s with a body", ErrGrammar, function)
}

func checked(e Expr, err error) (Expr, error) {
	if err == nil && !e.valid(Number) {
		err = fmt.Errorf("%w: of the wrong type, or larger than %d nodes or %d levels", ErrGrammar, MaxNodes, MaxDepth)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

func readBlock(list []ast.Stmt) (Expr, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: a block without a return", ErrGrammar)
	}
	switch s := list[0].(type) {
	case *ast.ReturnStmt:
		if len(s.Results) == 1 && len(list) == 1 {
			return read(s.Results[0])
		}
	case *ast.IfStmt:
		if s.Init != nil || s.Else != nil {
			break
		}
		condition, err := read(s.Cond)
		if err != nil {
			return nil, err
		}
		then, err := readBlock(s.Body.List)
		if err != nil {
			return nil, err
		}
		otherwise, err := readBlock(list[1:])
		if err != nil {
			return nil, err
		}
		return slices.Concat(Expr{{Op: Pick}}, condition, then, otherwise), nil
	}
	return nil, fmt.Errorf("%w: a statement that is neither a plain if nor one return", ErrGrammar)
}

func read(x ast.Expr) (Expr, error) {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return read(x.X)
	case *ast.Ident:
		if op := slices.Index(names[:], x.Name); op > 0 && len(shapes[op].operands) == 0 {
			return Expr{{Op: Op(op)}}, nil
		}
	case *ast.BasicLit:
		if v, err := strconv.ParseFloat(x.Value, 64); err == nil && x.Kind != token.STRING && x.Kind != token.CHAR {
			return Expr{{Const, v}}, nil
		}
	case *ast.UnaryExpr:
		if lit, ok := x.X.(*ast.BasicLit); ok && x.Op == token.SUB {
			e, err := read(lit)
			if err == nil {
				e[0].Value = -e[0].Value
			}
			return e, err
		}
		return readNode(slices.Index(tokens[:], x.Op), 1, x.X)
	case *ast.BinaryExpr:
		op := slices.Index(tokens[:], x.Op)
		if x.Op == token.SUB {
			op = int(Sub)
		}
		return readNode(op, 2, x.X, x.Y)
	case *ast.CallExpr:
		if f, ok := x.Fun.(*ast.Ident); ok && !x.Ellipsis.IsValid() {
			return readNode(slices.Index(names[:], f.Name), len(x.Args), x.Args...)
		}
	}
	return nil, fmt.Errorf("%w: %T", ErrGrammar, x)
}

func readNode(op, operands int, args ...ast.Expr) (Expr, error) {
	if op <= 0 || operands == 0 || len(shapes[op].operands) != operands {
		return nil, fmt.Errorf("%w: an operation that is not part of it", ErrGrammar)
	}
	e := Expr{{Op: Op(op)}}
	for _, a := range args {
		operand, err := read(a)
		if err != nil {
			return nil, err
		}
		e = append(e, operand...)
	}
	return e, nil
}
