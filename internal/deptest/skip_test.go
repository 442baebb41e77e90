// SPDX-License-Identifier: Apache-2.0

package deptest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// theOnlySkip is the file that may skip a test.
const theOnlySkip = "internal/testenv/testenv.go"

// TestNoOtherSkip goes through every file of every module: a skip proves nothing and nobody reads it, so there is one
// place for it, which can turn it into a failure.
func TestNoOtherSkip(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		found := skips(f)
		if f.name != theOnlySkip {
			for _, s := range found {
				t.Errorf("%s; state what the test needs with testenv.Need, or fail", s)
			}
		} else if len(found) != 1 {
			t.Errorf("%s must skip in exactly one place, found %q", f.name, found)
		}
	}
}

// skips finds what can end a test as skipped, or shorten it unseen: the methods Skip, Skipf and SkipNow, called or
// taken as values, of whatever type (the syntax does not tell types apart, and no method of ours needs such a name),
// and the -short flag of package testing.
func skips(f goFile) []string {
	var found []string
	testingName := f.imported("testing")
	if testingName == "." {
		found = append(found, f.at(f.ast.Name)+": imports testing with a dot, which hides what comes from it")
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name := selector.Sel.Name
		if slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, name) {
			found = append(found, f.at(selector.Sel)+": uses "+name)
		}
		from, isIdent := selector.X.(*ast.Ident)
		if name == "Short" && isIdent && from.Name == testingName {
			found = append(found, f.at(selector.Sel)+": asks testing.Short")
		}
		return true
	})
	return found
}

func TestSkipsAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"call":            {`func F(t *testing.T) { t.Skip("x") }`, 1},
		"formatted":       {`func F(b *testing.B) { b.Skipf("x %d", 1) }`, 1},
		"now":             {`func F(f *testing.F) { f.SkipNow() }`, 1},
		"across lines":    {"func F(t *testing.T) {\n\tt.\n\t\tSkip()\n}", 1},
		"method value":    {`func F(t *testing.T) { stop := t.SkipNow; stop() }`, 1},
		"method expr":     {`var f = (*testing.T).SkipNow`, 1},
		"behind a type":   {`type wrap struct{ testing.TB }; func F(w wrap) { w.TB.SkipNow() }`, 1},
		"short":           {`func F(t *testing.T) { if testing.Short() { return } }`, 1},
		"several":         {`func F(t *testing.T) { t.Skip(); t.SkipNow() }`, 2},
		"in a comment":    {`// t.Skip() is forbidden`, 0},
		"in a string":     {`var s = "t.Skip()"`, 0},
		"walks a tree":    {`var _ = fs.SkipDir`, 0},
		"own declaration": {`type T struct{}; func (T) Skip() {}`, 0},
		"other short":     {`func F(x interface{ Short() bool }) { x.Short() }`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := "package p\n\nimport (\n\t\"io/fs\"\n\t\"testing\"\n)\n\nvar _ = fs.SkipAll\nvar _ *testing.T\n\n" + c.body
			found := skips(parse(t, "x_test.go", []byte(source)))
			if len(found) != c.want {
				t.Errorf("found %q, want %d", found, c.want)
			}
			for _, s := range found {
				if !strings.HasPrefix(s, "x_test.go:1") {
					t.Errorf("%q does not begin with file and line", s)
				}
			}
		})
	}
	renamed := parse(t, "x_test.go", []byte("package p\nimport tt \"testing\"\nfunc F() bool { return tt.Short() }"))
	dotted := parse(t, "x_test.go", []byte("package p\nimport . \"testing\"\nfunc F() bool { return Short() }"))
	if len(skips(renamed)) != 1 || len(skips(dotted)) != 1 {
		t.Errorf("renamed %q, dotted %q", skips(renamed), skips(dotted))
	}
}
