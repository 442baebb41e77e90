// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"

	"github.com/evoseal/containment/examples/evolve/internal/variant"
)

// file is one file of the surface that can be parsed.
type file struct {
	path   string
	src    []byte
	ast    *ast.File
	bodies []string // functions whose bodies alone may change; empty: everything
}

// pkg is the files of the surface that are in one directory and one package. Files that are not on the surface are
// missing: what they declare is an error of the baseline, which does not count.
type pkg struct {
	dir, name string
	fset      *token.FileSet
	files     []*file
	info      *types.Info
	types     *types.Package
	baseline  map[string]int
}

// load parses what is on the surface. Tests are left out: they judge.
func load(s *variant.State) []*pkg {
	var all []*pkg
	for _, sf := range s.Surface {
		if !strings.HasSuffix(sf.Path, ".go") || strings.HasSuffix(sf.Path, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, sf.Path, sf.Content, parser.PackageClauseOnly)
		if err != nil {
			continue
		}
		i := slices.IndexFunc(all, func(p *pkg) bool { return p.dir == path.Dir(sf.Path) && p.name == parsed.Name.Name })
		if i < 0 {
			i = len(all)
			all = append(all, &pkg{dir: path.Dir(sf.Path), name: parsed.Name.Name, fset: token.NewFileSet()})
		}
		p := all[i]
		f := &file{path: sf.Path, src: []byte(sf.Content), bodies: sf.Bodies}
		if f.ast, err = parse(p.fset, f.path, f.src); err == nil {
			p.files = append(p.files, f)
		}
	}
	for _, p := range all {
		var asts []*ast.File
		for _, f := range p.files {
			asts = append(asts, f.ast)
		}
		p.info = &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}, Scopes: map[ast.Node]*types.Scope{},
		}
		p.types, p.baseline = p.check(asts, p.info)
	}
	return all
}

func parse(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	return parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
}

// check runs the type checker without the imported packages, and counts its messages. What comes from an import has no
// type then, and gives no further message.
func (p *pkg) check(files []*ast.File, info *types.Info) (*types.Package, map[string]int) {
	messages := map[string]int{}
	config := types.Config{FakeImportC: true, Error: func(err error) {
		if e, ok := err.(types.Error); ok { // positions move
			messages[e.Msg]++
		}
	}}
	checked, _ := config.Check(p.dir, p.fset, files, info)
	return checked, messages
}

// accepts parses and checks the package with another content of one of its files.
func (p *pkg) accepts(changed *file, src []byte) bool {
	// The file set would grow with every variant, so this one is used once, and the other files are parsed again.
	fresh := &pkg{dir: p.dir, fset: token.NewFileSet()}
	var asts []*ast.File
	for _, f := range p.files {
		text := f.src
		if f == changed {
			text = src
		}
		parsed, err := parse(fresh.fset, f.path, text)
		if err != nil {
			return false
		}
		asts = append(asts, parsed)
	}
	_, messages := fresh.check(asts, nil)
	for message, count := range messages {
		if count > p.baseline[message] {
			return false
		}
	}
	return true
}

// mayChange reports whether the surface lets the body of a function change.
func (f *file) mayChange(d *ast.FuncDecl) bool {
	return len(f.bodies) == 0 || slices.Contains(f.bodies, funcName(d))
}

// funcName is the name as it stands in a policy: "Name", "(T).Name" or "(*T).Name".
func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) != 1 {
		return d.Name.Name
	}
	t, star := d.Recv.List[0].Type, ""
	if s, ok := t.(*ast.StarExpr); ok {
		t, star = s.X, "*"
	}
	switch x := t.(type) { // without type parameters
	case *ast.IndexExpr:
		t = x.X
	case *ast.IndexListExpr:
		t = x.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return fmt.Sprintf("(%s%s).%s", star, id.Name, d.Name.Name)
	}
	return d.Name.Name
}
