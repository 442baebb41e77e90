// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"go/ast"
	"go/token"
	"strings"
)

// assign takes another operator, and = for := or the other way round, which shadows.
func (c *collector) assign(n *ast.AssignStmt) {
	switch n.Tok {
	case token.DEFINE:
		c.token(n.TokPos, n.Tok, token.ASSIGN, "shadowing", rare)
	case token.ASSIGN:
		c.token(n.TokPos, n.Tok, token.ADD_ASSIGN, "assignment", rare)
		c.token(n.TokPos, n.Tok, token.DEFINE, "shadowing", exotic)
	default:
		for i, op := range others[n.Tok] {
			c.token(n.TokPos, n.Tok, op, "assignment", common+2*i)
		}
	}
	if len(n.Rhs) == 1 && n.Tok != token.DEFINE {
		c.offByOne(n.Rhs[0], "value", rare)
	}
}

func (c *collector) incDec(n *ast.IncDecStmt) {
	to := token.INC
	if n.Tok == token.INC {
		to = token.DEC
	}
	c.token(n.TokPos, n.Tok, to, "assignment", common)
}

func (c *collector) branch(n *ast.BranchStmt) {
	to, ok := map[token.Token]token.Token{token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK}[n.Tok]
	if ok {
		c.token(n.Pos(), n.Tok, to, "branch", plausible)
	}
}

// returns gives another result back: the error that is at hand, one more or less, the opposite.
func (c *collector) returns(n *ast.ReturnStmt) {
	for i, e := range n.Results {
		id, _ := e.(*ast.Ident)
		switch {
		case id != nil && id.Name == "nil" && i == len(n.Results)-1:
			if c.visible("err", n.Pos()) != nil {
				c.replace(e, "err", "lost error", plausible)
			}
		case id != nil && id.Name == "err":
			c.replace(e, "nil", "error", rare)
		default:
			c.condition(boolean(c, e))
			if _, sum := e.(*ast.BinaryExpr); !sum && c.isKind(e, isInteger) {
				c.offByOne(e, "result", occasional)
			}
		}
	}
	for i := range len(n.Results) - 1 {
		a, b := n.Results[i], n.Results[i+1]
		c.add(a.Pos(), b.End(), c.text(b)+", "+c.text(a), "swap results", rare)
	}
}

// boolean returns the expression if it is a call or a variable that is known to be true or false, else nil.
func boolean(c *collector, e ast.Expr) ast.Expr {
	if id, ok := e.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") { // see ident
		return nil
	}
	switch e.(type) {
	case *ast.CallExpr, *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		if c.isKind(e, isBoolean) {
			return e
		}
	}
	return nil
}

// statements removes one statement, moves one behind the next, and adds what is missing.
func (c *collector) statements(list []ast.Stmt) {
	for i, s := range list {
		c.remove(s)
		if i+1 < len(list) {
			c.swap(s, list[i+1])
			c.checkError(s, list[i+1])
		}
		if f, ok := s.(*ast.IfStmt); ok {
			c.leave(f)
		}
	}
	if len(list) > 0 {
		c.checkError(list[len(list)-1], nil)
	}
}

// remove takes a statement away, or the condition that it stands under.
func (c *collector) remove(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt:
		c.replace(s, "", "remove", occasional)
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE {
			c.replace(s, "", "remove", occasional)
		}
	case *ast.BranchStmt, *ast.ReturnStmt:
		c.replace(s, "", "remove", rare)
	case *ast.DeferStmt:
		c.replace(s, "", "remove", rare)
		c.replace(s, c.text(s.Call), "defer", rare)
	case *ast.GoStmt:
		c.replace(s, c.text(s.Call), "go", rare)
	case *ast.IfStmt:
		switch {
		case s.Else != nil:
			c.replace(s, c.text(s.Body), "drop a condition", rare)
			if _, chain := s.Else.(*ast.BlockStmt); chain {
				c.replace(s, c.text(s.Else), "drop a condition", rare)
			}
		default:
			c.replace(s, "", "remove", occasional)
			if s.Init == nil {
				c.replace(s, c.text(s.Body), "drop a condition", rare)
			}
		}
	case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt:
		c.replace(s, "", "remove", last)
	}
}

// swap exchanges two simple statements.
func (c *collector) swap(a, b ast.Stmt) {
	if !simple(a) || !simple(b) {
		return
	}
	between := string(c.f.src[c.offset(a.End()):c.offset(b.Pos())])
	if strings.Contains(between, "//") { // a comment would swallow what comes behind it
		between = "\n"
	}
	c.add(a.Pos(), b.End(), c.text(b)+between+c.text(a), "swap statements", exotic)
}

func simple(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.IfStmt:
		return true
	}
	return false
}
