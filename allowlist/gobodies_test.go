// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

const goBase = "package p\n\ntype P struct{ n int }\ntype G[T any] struct{ v T }\n\n// A does.\nfunc A(x int) int {\n\treturn x\n}\n\n" +
	"func (p *P) M() {\n\tp.n++\n}\n\nfunc (p P) M2() {}\n\nfunc (g *G[T]) N() T { return g.v }\n\nfunc B() {}\n\nfunc ext()\n" +
	"func init() {}\nfunc init() {}\n"

func TestGoBodies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, old, new string
		funcs          []string
		allow          bool
	}{
		{"function", "return x", "return x + 1", []string{"A"}, true},
		{"emptied", "\n\treturn x\n", "", []string{"A"}, true},
		{"pointer method", "p.n++", "p.n--", []string{"(*P).M"}, true},
		{"value method", "M2() {}", "M2() { p.n = 1 }", []string{"(P).M2"}, true},
		{"generic method", "g.v", "*new(T)", []string{"(*G[T]).N"}, true},
		{"two at once", "return x\n}\n\nfunc (p *P) M() {\n\tp.n++", "return 0\n}\n\nfunc (p *P) M() {\n\t", []string{"(*P).M", "A"}, true},
		{"named twice in the rule", "return x", "return 0", []string{"A", "A"}, true},
		{"nothing changes", "x", "x", []string{"A"}, true},
		{"receiver written otherwise", "p.n++", "p.n--", []string{"(P).M"}, false},
		{"receiver without parentheses", "p.n++", "p.n--", []string{"P.M"}, false},
		{"generic receiver without its parameter", "g.v", "*new(T)", []string{"(*G).N"}, false},
		{"method by its bare name", "p.n++", "p.n--", []string{"M"}, false},
		{"other function", "func B() {}", "func B() { A(1) }", []string{"A"}, false},
		{"one of the rule is missing", "return x", "return 0", []string{"A", "C"}, false},
		{"no body", "x", "x", []string{"ext"}, false},
		{"twice in the file", "x", "x", []string{"init"}, false},
		{"no function named", "return x", "return 0", nil, false},
		{"space before the brace", "int {\n\treturn x", "int  {\n\treturn x", []string{"A"}, false},
		{"comment above", "A does", "A did", []string{"A"}, false},
		{"close and open", "return x\n}", "return x\n}\n\nfunc init() {\n\tA(1)\n}", []string{"A"}, false},
		{"close and take over the next body", "return x\n}\n\nfunc (p *P) M() {", "return x\n}\n\nfunc (p *P) M() {\n}\nfunc X() {", []string{"A"}, false},
		{"moved", "func B() {}\n\nfunc ext()", "func ext()\n\nfunc B() {}", []string{"B"}, false},
		{"body lost", "func B() {}", "func B()", []string{"B"}, false},
		{"comment swallows the rest", "return x", "return x /*", []string{"A"}, false},
		{"string swallows the rest", "return x", "_ = `", []string{"A"}, false},
		{"line directive", "return x", "/*line a.go:1:1*/return x\n//line b.go:900000:1\n", []string{"A"}, true}, // for 10.3 to refuse
		{"carriage returns in a body", "\n\treturn x\n", "\r\n\treturn x // c\r\n\t_ = `\r\n`\r\n", []string{"A"}, true},
		{"NUL", "return x", "return x\x00", []string{"A"}, false},
		{"byte order mark inside", "return x", "return x\uFEFF", []string{"A"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(goBase, c.old) {
				t.Fatal("the case does not fit the base")
			}
			content := strings.Replace(goBase, c.old, c.new, 1)
			if c.name == "no function named" && content == goBase {
				t.Fatal("nothing changed")
			}
			why := goBodies{funcs: c.funcs}.changed([]byte(goBase), []byte(content))
			if (why == "") != c.allow {
				t.Errorf("allowed %t: %q", why == "", why)
			}
		})
	}
}

// Whatever stands between the braces, splice and compare agree, and nothing outside ever changes.
func TestSpliceEqualsCompare(t *testing.T) {
	t.Parallel()
	const before, after = "func A(x int) int {", "}\n\nfunc (p *P) M()"
	i := strings.Index(goBase, before) + len(before)
	j := strings.Index(goBase, after)
	for _, body := range []string{
		"", " return 1 ", "\n\treturn 1\n", "return 1 // c", "return 1 // c\n", "return 1 }; func init() { ", "}\nfunc C() {", "}", "{",
		"/*", "/* } */ return 1", "`", "return len(`}`)", "\"}\"", "'}'", "//line x.go:1\nreturn 1", "/*line x.go:1*/ return 1",
		"if true {}; return 1", "return func() int { return 1 }()", "\xff", "\x00", "return 1\r\n", "a := `\r\n`; return len(a)\n",
		"goto L; L: return 1",
	} {
		byHand := []byte(goBase[:i] + body + goBase[j:])
		allowed := goBodies{funcs: []string{"A"}}.changed([]byte(goBase), byHand) == ""
		spliced, err := SpliceGoBody([]byte(goBase), "A", []byte(body))
		if allowed != (err == nil) {
			t.Errorf("%q: compare allows %t, splice says %v", body, allowed, err)
		}
		if err == nil && !bytes.Equal(spliced, byHand) {
			t.Errorf("%q: splice made %q", body, spliced)
		}
		if err != nil && (!errors.Is(err, ErrOutsideRegion) || spliced != nil) {
			t.Errorf("%q: %v", body, err)
		}
	}
	for _, fn := range []string{"", "C", "init", "ext", "M", "(P).M"} {
		if _, err := SpliceGoBody([]byte(goBase), fn, nil); !errors.Is(err, ErrOutsideRegion) {
			t.Errorf("%q: %v", fn, err)
		}
	}
	if _, err := SpliceGoBody([]byte("not Go"), "A", nil); !errors.Is(err, ErrOutsideRegion) {
		t.Error(err)
	}
}

// FuzzSpliceGoBody: a body changes nothing but itself.
func FuzzSpliceGoBody(f *testing.F) {
	f.Add([]byte(goBase), "A", []byte("\n\treturn 1\n"))
	f.Add([]byte(goBase), "(*P).M", []byte("}\nfunc C() {"))
	for _, c := range readRegionCases(f) {
		if c.Base != nil {
			f.Add([]byte(*c.Base), "(*Pool).Next", []byte(c.New))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, fn string, body []byte) {
		out, err := SpliceGoBody(src, fn, body)
		if err != nil {
			return
		}
		restored := goBodies{funcs: []string{fn}}
		pieces, why := restored.outside(out)
		if why != "" || !bytes.Equal(bytes.Join(pieces, body), out) {
			t.Errorf("spliced %q into %q: %q, %s", body, src, out, why)
		}
		if why := restored.changed(out, src); why != "" {
			t.Errorf("there is no way back: %s", why)
		}
	})
}
