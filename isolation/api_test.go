// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/evoseal/containment/"

// powers are the types with which somebody could write the tree, run something, or end an iteration without the
// boundary. What the package exports hands out none of them.
var powers = []string{
	"*" + module + "allowlist.Tree", "*" + module + "allowlist.Plan", "*" + module + "allowlist.Receipt",
	"*" + module + "rollback.Store", "*" + module + "runaway.Governor", "*" + module + "runaway.Iteration",
	module + "executor.Executor", "*os.File", "*os.Root",
}

// given are the places where a caller puts in what has such a power; it is the caller's own.
var given = []string{"Config.Governor", "Config.Tree", "Config.Store", "Candidate.Executor"}

// asked are the functions that take an executor beside the boundary: they attack it, or look at what it says.
var asked = []string{"Verify", "Report.Current"}

// exported type-checks what the package exports. Function bodies are left out, and of imported packages there are the
// powers alone: everything else is an invalid type, which is none.
func exported(t *testing.T) *types.Scope {
	t.Helper()
	set := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var parsed []*ast.File
	for _, name := range names {
		if ours, err := build.Default.MatchFile(".", name); err != nil || !ours || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	config := types.Config{Importer: onlyPowers{}, IgnoreFuncBodies: true, Error: func(error) {}}
	pkg, _ := config.Check(module+"isolation", set, parsed, nil) // errors: names that are not there
	return pkg.Scope()
}

// onlyPowers imports packages that have nothing but powerful types.
type onlyPowers struct{}

func (onlyPowers) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, strings.TrimPrefix(filepath.Base(path), "v4"))
	for _, power := range powers {
		full := strings.TrimPrefix(power, "*")
		dot := strings.LastIndex(full, ".")
		if full[:dot] != path {
			continue
		}
		var under types.Type = types.NewStruct(nil, nil)
		if !strings.HasPrefix(power, "*") {
			under = types.NewInterfaceType(nil, nil)
		}
		name := types.NewTypeName(token.NoPos, pkg, full[dot+1:], nil)
		types.NewNamed(name, under, nil)
		pkg.Scope().Insert(name)
	}
	pkg.MarkComplete()
	return pkg, nil
}

// TestNothingExportedGoesRoundTheBoundary looks at every exported function, method and field.
func TestNothingExportedGoesRoundTheBoundary(t *testing.T) {
	t.Parallel()
	scope := exported(t)
	config := scope.Lookup("Config").Type().Underlying().(*types.Struct)
	for field := range config.Fields() { // the check finds what is there
		if slices.Contains(given, "Config."+field.Name()) && power(field.Type()) == "" {
			t.Errorf("Config.%s is not seen as what it is: %v", field.Name(), field.Type())
		}
	}
	seen := 0
	for _, name := range scope.Names() {
		object := scope.Lookup(name)
		if !object.Exported() {
			continue
		}
		seen++
		switch o := object.(type) {
		case *types.Func:
			checkSignature(t, name, o.Type().(*types.Signature))
		case *types.Var:
			checkPower(t, name, o.Type())
		case *types.TypeName:
			checkType(t, name, o.Type())
		}
	}
	if seen < 50 {
		t.Errorf("only %d exported names were seen", seen)
	}
}

func checkType(t *testing.T, name string, typ types.Type) {
	t.Helper()
	if s, ok := typ.Underlying().(*types.Struct); ok {
		for field := range s.Fields() {
			if place := name + "." + field.Name(); field.Exported() && !slices.Contains(given, place) {
				checkPower(t, place, field.Type())
			}
		}
	}
	if i, ok := typ.Underlying().(*types.Interface); ok {
		for m := range i.Methods() { // implemented by the caller: what it gets is what counts
			for v := range m.Type().(*types.Signature).Params().Variables() {
				checkPower(t, name+"."+m.Name(), v.Type())
			}
		}
		return
	}
	set := types.NewMethodSet(types.NewPointer(typ))
	for method := range set.Methods() {
		if method.Obj().Exported() {
			checkSignature(t, name+"."+method.Obj().Name(), method.Type().(*types.Signature))
		}
	}
}

func checkSignature(t *testing.T, name string, s *types.Signature) {
	t.Helper()
	for v := range s.Results().Variables() {
		checkPower(t, name, v.Type())
	}
	for v := range s.Params().Variables() {
		if power(v.Type()) != "" && !slices.Contains(asked, name) {
			t.Errorf("%s takes %v: it could use it without a boundary", name, v.Type())
		}
	}
}

func checkPower(t *testing.T, place string, typ types.Type) {
	t.Helper()
	if what := power(typ); what != "" {
		t.Errorf("%s hands out %s", place, what)
	}
}

// power returns the powerful type that a type is or holds one layer below.
func power(typ types.Type) string {
	switch u := typ.(type) {
	case *types.Slice:
		return power(u.Elem())
	case *types.Map:
		return power(u.Elem())
	case *types.Signature:
		for v := range u.Results().Variables() {
			if what := power(v.Type()); what != "" {
				return what
			}
		}
	}
	if text := types.TypeString(typ, nil); slices.Contains(powers, text) {
		return text
	}
	return ""
}

// TestPowerIsFound: the check can fail.
func TestPowerIsFound(t *testing.T) {
	t.Parallel()
	pkg := types.NewPackage(module+"executor", "executor")
	ex := types.NewNamed(types.NewTypeName(token.NoPos, pkg, "Executor", nil), types.NewInterfaceType(nil, nil), nil)
	if power(ex) == "" || power(types.NewSlice(ex)) == "" || power(types.Typ[types.String]) != "" {
		t.Error("an executor is not found, or a string is")
	}
}

// TestMethodsOfTheBoundary: there is one way to do a step, and nothing that does a part of one.
func TestMethodsOfTheBoundary(t *testing.T) {
	t.Parallel()
	scope := exported(t)
	for name, want := range map[string][]string{
		"Boundary": {"Close", "Status", "Try"}, "Spender": {"Check", "Seen", "Spend"},
	} {
		var got []string
		set := types.NewMethodSet(types.NewPointer(scope.Lookup(name).Type()))
		for m := range set.Methods() {
			if m.Obj().Exported() {
				got = append(got, m.Obj().Name())
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestNothingSaidNamesTheTree: neither a verdict nor a status tells where the tree is.
func TestNothingSaidNamesTheTree(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	v, err := b.Try(context.Background(), s.good("1"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"verdict": fmt.Sprintf("%+v", *v), "status": fmt.Sprintf("%+v", b.Status())} {
		if strings.Contains(text, s.dir) {
			t.Errorf("the %s names the tree: %s", name, text)
		}
	}
}
