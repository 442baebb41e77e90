// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/testenv"
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

// exported loads what the package exports, from the compiler's own data.
func exported(t *testing.T) *types.Scope {
	t.Helper()
	testenv.Need(t, "go")
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", ".")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
	pkg, err := importer.ForCompiler(token.NewFileSet(), "gc", open).Import(module + "isolation")
	if err != nil {
		t.Fatal(err)
	}
	return pkg.Scope()
}

// TestNothingExportedGoesRoundTheBoundary looks at every exported function, method and field.
func TestNothingExportedGoesRoundTheBoundary(t *testing.T) {
	t.Parallel()
	scope := exported(t)
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
