// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
)

// changed says what is wrong with a change of base to content, or nothing. Both are parsed, the bodies are cut out, and
// what is left must be equal piece by piece. A body cannot smuggle a declaration in: the piece behind it starts where
// the parser sees the brace that closes it, and must be the piece of the base.
func (g goBodies) changed(base, content []byte) string {
	old, why := g.outside(base)
	if why != "" {
		return "the file as it is leaves nothing to change: " + why
	}
	new, why := g.outside(content)
	if why != "" {
		return why
	}
	if !slices.EqualFunc(old, new, bytes.Equal) {
		return "a byte outside the bodies of the named functions changed"
	}
	return ""
}

// outside returns the pieces of src between the bodies, braces included.
func (g goBodies) outside(src []byte) (pieces [][]byte, why string) {
	bodies, why := findBodies(src)
	if why != "" {
		return nil, why
	}
	var cuts []bodyCut
	for _, name := range slices.Compact(slices.Sorted(slices.Values(g.funcs))) {
		found := bodies[name]
		if len(found) != 1 || found[0].end == 0 {
			return nil, "a named function does not exist exactly once, with a body"
		}
		cuts = append(cuts, found[0])
	}
	slices.SortFunc(cuts, func(a, b bodyCut) int { return a.start - b.start })
	at := 0
	for _, c := range cuts {
		pieces = append(pieces, src[at:c.start])
		at = c.end
	}
	return append(pieces, src[at:]), ""
}

// bodyCut is a body between its braces, as offsets; zero for a declaration without one.
type bodyCut struct{ start, end int }

// findBodies returns the bodies of all functions by name, as "Name", "(T).Name" or "(*T).Name".
func findBodies(src []byte) (map[string][]bodyCut, string) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, "the text does not parse as Go" // the message of the parser quotes it
	}
	// Unadjusted positions: //line directives move the adjusted ones at will.
	offset := func(p token.Pos) int { return fset.PositionFor(p, false).Offset }
	bodies := map[string][]bodyCut{}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := fn.Name.Name
		if fn.Recv != nil {
			if len(fn.Recv.List) != 1 {
				return nil, "a method has not exactly one receiver"
			}
			// As written, without its name: two spellings of one type would need a type checker to be told apart.
			typ := fn.Recv.List[0].Type
			name = "(" + string(src[offset(typ.Pos()):offset(typ.End())]) + ")." + name
		}
		var cut bodyCut
		if fn.Body != nil {
			cut = bodyCut{offset(fn.Body.Lbrace) + 1, offset(fn.Body.Rbrace)}
		}
		bodies[name] = append(bodies[name], cut)
	}
	return bodies, ""
}
