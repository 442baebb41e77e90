// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// collector walks one file and notes every change that the operators know.
type collector struct {
	p       *pkg
	f       *file
	name    string     // of the function
	stack   []ast.Node // what is around the node that is visited, the outermost first
	changes []change
}

// collect returns the changes of a file, in the order of the operators for each node.
func collect(p *pkg, f *file) []change {
	c := &collector{p: p, f: f}
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && f.mayChange(fn) {
			c.name = funcName(fn)
			c.walk(fn)
		} else if g, ok := d.(*ast.GenDecl); ok && len(f.bodies) == 0 && (g.Tok == token.VAR || g.Tok == token.CONST) {
			c.name = ""
			c.walk(g)
		}
	}
	return c.changes
}

func (c *collector) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			c.stack = c.stack[:len(c.stack)-1]
			return true
		}
		if fn, ok := n.(*ast.FuncDecl); ok { // neither the receiver nor the signature
			c.stack = append(c.stack, fn)
			c.function(fn.Type, fn.Body)
			c.walk(fn.Body)
			c.stack = c.stack[:len(c.stack)-1]
			return false
		}
		c.visit(n)
		c.stack = append(c.stack, n)
		return true
	})
}

// visit calls the operators for one kind of node.
func (c *collector) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		c.binary(n)
	case *ast.UnaryExpr:
		c.unary(n)
	case *ast.BasicLit:
		c.literal(n)
	case *ast.Ident:
		c.ident(n)
	case *ast.IndexExpr:
		c.offByOne(n.Index, "index", 2)
	case *ast.SliceExpr:
		c.slice(n)
	case *ast.SelectorExpr:
		c.selector(n)
	case *ast.CallExpr:
		c.call(n)
	case *ast.IfStmt:
		c.condition(n.Cond)
	case *ast.ForStmt:
		c.condition(n.Cond)
	case *ast.AssignStmt:
		c.assign(n)
	case *ast.IncDecStmt:
		c.incDec(n)
	case *ast.BranchStmt:
		c.branch(n)
	case *ast.ReturnStmt:
		c.returns(n)
	case *ast.RangeStmt:
		c.ranges(n)
	case *ast.FuncLit:
		c.function(n.Type, n.Body)
	case *ast.BlockStmt:
		c.statements(n.List)
	case *ast.CaseClause:
		c.statements(n.Body)
	case *ast.CommClause:
		c.statements(n.Body)
	}
}

// add notes that the bytes from one position to another become text.
func (c *collector) add(from, to token.Pos, text, kind string, cost int) {
	position := c.p.fset.Position(from)
	start, end := c.offset(from), c.offset(to)
	if string(c.f.src[start:end]) == text {
		return
	}
	c.changes = append(c.changes, change{
		file: c.f, start: start, end: end, text: text, line: position.Line, col: position.Column,
		kind: kind, cost: cost, function: c.name,
	})
}

// replace is add for a whole node.
func (c *collector) replace(n ast.Node, text, kind string, cost int) {
	c.add(n.Pos(), n.End(), text, kind, cost)
}

// token is add for an operator at a position.
func (c *collector) token(at token.Pos, old, replacement token.Token, kind string, cost int) {
	c.add(at, at+token.Pos(len(old.String())), replacement.String(), kind, cost)
}

func (c *collector) offset(p token.Pos) int { return c.p.fset.Position(p).Offset }

// text is the source of a node.
func (c *collector) text(n ast.Node) string {
	return string(c.f.src[c.offset(n.Pos()):c.offset(n.End())])
}

// parent is what is directly around the node that is visited, or nil.
func (c *collector) parent() ast.Node {
	if len(c.stack) == 0 {
		return nil
	}
	return c.stack[len(c.stack)-1]
}

// signature is the type of the function around the node that is visited, or nil.
func (c *collector) signature() *ast.FuncType {
	for _, n := range slices.Backward(c.stack) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return n.Type
		case *ast.FuncLit:
			return n.Type
		}
	}
	return nil
}

// inLoop reports whether a continue would be at home here.
func (c *collector) inLoop() bool {
	for _, n := range slices.Backward(c.stack) {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return true
		case *ast.FuncDecl, *ast.FuncLit:
			return false
		}
	}
	return false
}

// typeOf returns the type of an expression, or nil if it comes from a package that is not there.
func (c *collector) typeOf(e ast.Expr) types.Type {
	t := c.p.info.TypeOf(e)
	if t == nil || t == types.Typ[types.Invalid] {
		return nil
	}
	return t
}

// isKind reports whether the type is known and basic with one of these properties.
func (c *collector) isKind(e ast.Expr, info types.BasicInfo) bool {
	t := c.typeOf(e)
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&info != 0
}

// visible returns the variable of this name that can be used at a position, or nil.
func (c *collector) visible(name string, at token.Pos) *types.Var {
	scope := c.scope(at)
	if scope == nil {
		return nil
	}
	_, object := scope.LookupParent(name, at)
	v, _ := object.(*types.Var)
	return v
}

// scope returns the innermost scope at a position, or nil.
func (c *collector) scope(at token.Pos) *types.Scope {
	if c.p.types == nil {
		return nil
	}
	return c.p.types.Scope().Innermost(at)
}
