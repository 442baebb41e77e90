// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// siblings are names that are taken for one another.
var siblings = [][]string{
	{"min", "max"}, {"Min", "Max"}, {"len", "cap"}, {"Floor", "Ceil", "Round", "Trunc"}, {"HasPrefix", "HasSuffix"},
	{"TrimPrefix", "TrimSuffix"}, {"TrimLeft", "TrimRight", "Trim"}, {"CutPrefix", "CutSuffix"}, {"Index", "LastIndex"},
	{"IndexByte", "LastIndexByte"}, {"Contains", "ContainsAny", "HasPrefix"}, {"ToLower", "ToUpper"}, {"First", "Last"},
	{"Lock", "RLock"}, {"Unlock", "RUnlock"}, {"Before", "After"}, {"Push", "Pop"}, {"Left", "Right"}, {"Front", "Back"},
	{"PushFront", "PushBack"}, {"Next", "Prev"}, {"Write", "Read"}, {"Add", "Sub"}, {"Start", "End"}, {"Split", "SplitN"},
	{"IsDigit", "IsNumber", "IsLetter"}, {"IsUpper", "IsLower"}, {"Any", "All"}, {"BigEndian", "LittleEndian"},
	{"left", "right"}, {"low", "high"}, {"lo", "hi"}, {"start", "end"}, {"src", "dst"}, {"prev", "next"}, {"head", "tail"},
}

// siblingsOf returns the other names of each group that has this one.
func siblingsOf(name string) []string {
	var found []string
	for _, group := range siblings {
		if slices.Contains(group, name) {
			for _, other := range group {
				if other != name {
					found = append(found, other)
				}
			}
		}
	}
	return found
}

// ident takes another value of the same type, and a boolean for the other.
func (c *collector) ident(n *ast.Ident) {
	switch n.Name {
	case "true":
		c.replace(n, "false", "boolean", common)
		return
	case "false":
		c.replace(n, "true", "boolean", common)
		return
	}
	if s, ok := c.parent().(*ast.SelectorExpr); ok && s.Sel == n { // see selector
		return
	}
	use, ok := c.p.info.Uses[n]
	if !ok {
		return
	}
	if call, ok := c.parent().(*ast.CallExpr); ok && call.Fun == n {
		for _, name := range siblingsOf(n.Name) {
			c.replace(n, name, "name", plausible)
		}
		return
	}
	v, ok := use.(*types.Var)
	if !ok || v.IsField() {
		return
	}
	for i, name := range c.sameType(v, n.Pos()) {
		c.replace(n, name, "variable", min(rare+i/2, last))
	}
}

// maxVariables is how many other variables are tried in the place of one.
const maxVariables = 6

// sameType returns the variables that could stand for another one at a position, those that were declared nearby first.
// Where the type comes from a package that is not there, only variables of one declaration are known to have the same.
func (c *collector) sameType(v *types.Var, at token.Pos) []string {
	unknown := v.Type() == types.Typ[types.Invalid]
	var found []string
	for scope := c.scope(at); scope != nil && scope != types.Universe; scope = scope.Parent() {
		names := scope.Names()
		slices.SortFunc(names, func(a, b string) int { return int(scope.Lookup(b).Pos() - scope.Lookup(a).Pos()) })
		for _, name := range names {
			other, ok := scope.Lookup(name).(*types.Var)
			if !ok || other == v || name == "_" || unknown && other.Parent() != v.Parent() || slices.Contains(found, name) {
				continue
			}
			local := scope != c.p.types.Scope()
			if local && other.Pos() >= at || !types.Identical(other.Type(), v.Type()) {
				continue
			}
			if found = append(found, name); len(found) == maxVariables {
				return found
			}
		}
	}
	return found
}

// selector takes another field of the same type, or a function that is taken for this one.
func (c *collector) selector(n *ast.SelectorExpr) {
	for _, name := range siblingsOf(n.Sel.Name) {
		c.replace(n.Sel, name, "name", plausible)
	}
	selection := c.p.info.Selections[n]
	if selection == nil || selection.Kind() != types.FieldVal {
		return
	}
	t := selection.Recv()
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	tried := 0
	for f := range s.Fields() {
		if f.Name() != n.Sel.Name && f.Name() != "_" && types.Identical(f.Type(), selection.Type()) && tried < maxVariables &&
			f.Type() != types.Typ[types.Invalid] {
			c.replace(n.Sel, f.Name(), "field", rare)
			tried++
		}
	}
}

// call swaps arguments that stand side by side, and takes the only argument for the call.
func (c *collector) call(n *ast.CallExpr) {
	for i := range len(n.Args) - 1 {
		a, b := n.Args[i], n.Args[i+1]
		if ta, tb := c.typeOf(a), c.typeOf(b); ta != nil && tb != nil && !types.AssignableTo(ta, tb) {
			continue
		}
		between := string(c.f.src[c.offset(a.End()):c.offset(b.Pos())])
		c.add(a.Pos(), b.End(), c.text(b)+between+c.text(a), "swap arguments", occasional)
	}
	if len(n.Args) == 1 {
		if _, statement := c.parent().(*ast.ExprStmt); !statement {
			c.replace(n, c.text(n.Args[0]), "drop a call", exotic)
		}
	}
}
