// SPDX-License-Identifier: Apache-2.0

package deptest

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

const multierror = "github.com/hashicorp/go-multierror"

// TestMultierrorStaysInside: a caller must not need the package to use ours, so that we can drop it. No exported
// signature, field, constant or variable may name one of its types.
func TestMultierrorStaysInside(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.name, "_test.go") || strings.HasPrefix(f.name, "internal/") {
			continue
		}
		for _, place := range exposes(f, f.imported(multierror)) {
			t.Errorf("%s: an exported declaration names a type of go-multierror; return ErrorOrNil() as error", place)
		}
	}
}

// exposes returns where exported declarations of the file refer to the package with this local name.
func exposes(f goFile, pkg string) []string {
	if pkg == "" {
		return nil
	}
	var places []string
	for _, decl := range f.ast.Decls {
		for _, surface := range surfaces(decl) {
			ast.Inspect(surface, func(n ast.Node) bool {
				if selector, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := selector.X.(*ast.Ident); ok && x.Name == pkg {
						places = append(places, f.at(n))
					}
				}
				return true
			})
		}
	}
	return places
}

// surfaces returns the parts of a declaration that a caller can see. Unexported fields of an exported struct count too:
// there is no need for them, and telling them apart would take more than it gives.
func surfaces(decl ast.Decl) []ast.Node {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() {
			return []ast.Node{d.Type}
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		var nodes []ast.Node
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					nodes = append(nodes, s)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						nodes = append(nodes, s)
						break
					}
				}
			}
		}
		return nodes
	}
	return nil
}

func TestExposureIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"result":          {`func F() *multierror.Error { return nil }`, 1},
		"parameter":       {`func (T) F(e multierror.Group) {}`, 1},
		"field":           {`type T struct{ E []*multierror.Error }`, 1},
		"alias":           {`type T = multierror.Error`, 1},
		"variable":        {`var E *multierror.Error`, 1},
		"unexported":      {`func f() *multierror.Error { return nil }`, 0},
		"inside":          {`func F() error { var e *multierror.Error; return e.ErrorOrNil() }`, 0},
		"unexported type": {`type t struct{ e multierror.Error }`, 0},
	} {
		f := parse(t, "x.go", []byte("package p\n\nimport \""+multierror+"\"\n\n"+c.body))
		if places := exposes(f, f.imported(multierror)); len(places) != c.want {
			t.Errorf("%s: %q, want %d", name, places, c.want)
		}
	}
}
