// SPDX-License-Identifier: Apache-2.0

package repair_test

import (
	"context"
	"errors"
	"go/format"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/repair"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
)

// bugs are what one edit puts into a function, and what the function was before.
var bugs = []struct{ name, buggy, fixed string }{
	{"comparison", "if n < lim { n = 1 }; return n", "if n <= lim { n = 1 }; return n"},
	{"equality", "if n != lim { n = 1 }; return n", "if n == lim { n = 1 }; return n"},
	{"boolean", "if n > 0 || lim > 0 { return 1 }; return n", "if n > 0 && lim > 0 { return 1 }; return n"},
	{"negated call", "if !ok(n) { return 1 }; return n", "if ok(n) { return 1 }; return n"},
	{"lost negation", "if ok(n) { return 1 }; return n", "if !ok(n) { return 1 }; return n"},
	{"sum", "return n - lim", "return n + lim"},
	{"quotient", "return n / lim", "return n % lim"},
	{"assignment", "n -= lim; return n", "n += lim; return n"},
	{"increment", "n--; return n", "n++; return n"},
	{"constant", "return n * 9", "return n * 10"},
	{"hexadecimal", "return n & 0xfe", "return n & 255"},
	{"bound", "for i := 0; i < n; i++ { lim++ }; return lim", "for i := 1; i < n; i++ { lim++ }; return lim"},
	{"upper bound", "for i := 0; i < len(xs)-1; i++ { lim += xs[i] }; return lim", "for i := 0; i < len(xs); i++ { lim += xs[i] }; return lim"},
	{"index", "return xs[n]", "return xs[n-1]"},
	{"slice", "return total(xs[lim:])", "return total(xs[lim+1:])"},
	{"slice bound", "return total(xs[:n])", "return total(xs[:])"},
	{"arguments", "return diff(n, lim)", "return diff(lim, n)"},
	{"variable", "return diff(n, n)", "return diff(n, lim)"},
	{"field", "p := pair{n, lim}; return p.a", "p := pair{n, lim}; return p.b"},
	{"builtin", "return min(n, lim)", "return max(n, lim)"},
	{"statement too many", "n++; n = n * 2; return n", "n++; return n"},
	{"condition too many", "if n > 0 { n = 1 }; return n", "{ n = 1 }; return n"},
	{"branch", "for n < lim { n++; if ok(n) { break } }; return n", "for n < lim { n++; if ok(n) { continue } }; return n"},
	{"order", "n = n * 2; n++; return n", "n++; n = n * 2; return n"},
	{"shadowing", "x := 0; if ok(n) { x := n; _ = x }; return x", "x := 0; if ok(n) { x = n; _ = x }; return x"},
	{"missing return", "if ok(n) { log(n) }; return n", "if ok(n) { log(n); return 0 }; return n"},
	{"missing continue", "for range n { if ok(n) { log(n) }; lim++ }; return lim",
		"for range n { if ok(n) { log(n); continue }; lim++ }; return lim"},
	{"guard", "return xs[0]", "if len(xs) == 0 { return 0 }; return xs[0]"},
	{"result", "return n", "return lim"},
	{"range", "for x := range xs { lim += x }; return lim", "for _, x := range xs { lim += x }; return lim"},
	{"bool literal", "done := true; for !done { n++; done = true }; return n", "done := false; for !done { n++; done = true }; return n"},
}

// program puts a body into a file that compiles.
func program(t *testing.T, body string) string {
	t.Helper()
	src, err := format.Source([]byte(strings.ReplaceAll(`package p

type pair struct{ a, b int }

func ok(n int) bool { return n > 3 }

func log(n int) {}

func diff(a, b int) int { return a - b }

func total(xs []int) int { return len(xs) }

func F(n, lim int, xs []int) int {
`+body+"\n}\n", "; ", "\n")))
	if strings.Contains(body, "for i := ") { // the semicolons of a loop are no line breaks
		src, err = format.Source([]byte("package p\n\nfunc F(n, lim int, xs []int) int {\n" + body + "\n}\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

func state(path, content string) *variant.State {
	return &variant.State{Iteration: 1, Surface: []variant.File{{Path: path, Content: content, Bodies: []string{"F"}}}}
}

// next makes one step and adds it to the history, as a variant that failed.
func next(t *testing.T, g variant.Generator, s *variant.State) (allowlist.Edit, bool) {
	t.Helper()
	p, err := g.Next(t.Context(), s)
	if errors.Is(err, variant.ErrExhausted) {
		return allowlist.Edit{}, false
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Edits) != 1 || p.Note == "" || strings.ContainsAny(p.Note, "\n\r") {
		t.Fatalf("a proposal of %d edits with the note %q", len(p.Edits), p.Note)
	}
	s.History = append(s.History, variant.Past{Iteration: s.Iteration, Note: p.Note})
	if len(s.History) > variant.MaxHistory {
		s.History = s.History[1:]
	}
	s.Iteration++
	return p.Edits[0], true
}

// TestBugs: the fix of each bug is among the changes, and everything that is proposed can be parsed.
func TestBugs(t *testing.T) {
	t.Parallel()
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			s, want := state("p.go", program(t, b.buggy)), program(t, b.fixed)
			g := repair.New(repair.Config{})
			tried := 0
			for {
				edit, ok := next(t, g, s)
				if !ok {
					t.Fatalf("%d changes, and none is the fix", tried)
				}
				tried++
				got, err := format.Source(edit.Content)
				if err != nil {
					t.Fatalf("%v: %s", err, edit.Content)
				}
				if squeeze(string(got)) == squeeze(want) {
					break
				}
			}
			if tried > 60 {
				t.Errorf("the fix is change %d", tried)
			}
		})
	}
}

// squeeze makes two spellings of one program equal: where blanks and empty lines stand does not count.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestErrors: what makes and handles errors.
func TestErrors(t *testing.T) {
	t.Parallel()
	const head = "package p\n\nfunc try() (int, error) { return 0, nil }\n\nfunc do() error { return nil }\n\nfunc F() (string, error) {\n"
	for name, b := range map[string][2]string{
		"missing check": {"n, err := try()\nprintln(n)\nreturn \"x\", err\n}\n",
			"n, err := try()\nif err != nil {\nreturn \"\", err\n}\nprintln(n)\nreturn \"x\", err\n}\n"},
		"swallowed": {"n, _ := try()\nprintln(n)\nreturn \"x\", nil\n}\n",
			"n, err := try()\nif err != nil {\nreturn \"\", err\n}\nprintln(n)\nreturn \"x\", nil\n}\n"},
		"ignored": {"do()\nreturn \"x\", nil\n}\n", "if err := do(); err != nil {\nreturn \"\", err\n}\nreturn \"x\", nil\n}\n"},
		"lost": {"if err := do(); err != nil {\nreturn \"\", nil\n}\nreturn \"x\", nil\n}\n",
			"if err := do(); err != nil {\nreturn \"\", err\n}\nreturn \"x\", nil\n}\n"},
	} {
		s, g, found := state("p.go", head+b[0]), repair.New(repair.Config{}), false
		for !found {
			edit, ok := next(t, g, s)
			if !ok {
				break
			}
			found = squeeze(string(edit.Content)) == squeeze(head+b[1])
		}
		if !found {
			t.Errorf("%s: the fix is not proposed", name)
		}
	}
}

// TestResume: another Generator goes on where one stopped, however short the history is that is left; after an accepted
// variant the list begins anew.
func TestResume(t *testing.T) {
	t.Parallel()
	content := program(t, bugs[0].buggy)
	var want []string
	s, g := state("p.go", content), repair.New(repair.Config{})
	for edit, ok := next(t, g, s); ok; edit, ok = next(t, g, s) {
		want = append(want, string(edit.Content))
	}
	seen := map[string]bool{}
	for _, text := range want {
		if seen[text] || text == content {
			t.Errorf("proposed twice, or no change:\n%s", text)
		}
		seen[text] = true
	}
	s = state("p.go", content)
	var got []string
	for edit, ok := next(t, repair.New(repair.Config{}), s); ok; edit, ok = next(t, repair.New(repair.Config{}), s) {
		got = append(got, string(edit.Content))
		s.History = s.History[len(s.History)-1:]
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 5 {
		t.Errorf("%d changes; with a new Generator each time (-want +got):\n%s", len(want), diff)
	}
	s.History = append(s.History, variant.Past{Accepted: true, Note: "of another tree"})
	if edit, ok := next(t, g, s); !ok || string(edit.Content) != want[0] {
		t.Errorf("after an accepted variant: %v, %s", ok, edit.Content)
	}
}

// TestNotes: changes of long expressions that differ in the middle have notes of their own, so that none is tried twice.
func TestNotes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n+", 60)
	s := state("p.go", "package p\n\nfunc F(n, lim int) int { return "+long+"lim+lim+"+long+"n }\n")
	g, seen := repair.New(repair.Config{}), map[string]bool{}
	for edit, ok := next(t, g, s); ok; edit, ok = next(t, g, s) {
		if seen[string(edit.Content)] {
			t.Fatalf("%s is proposed twice", s.Last().Note)
		}
		seen[string(edit.Content)] = true
	}
	if len(seen) < 100 {
		t.Errorf("%d changes", len(seen))
	}
}

// TestPlaces: what the output or the profile names comes first.
func TestPlaces(t *testing.T) {
	t.Parallel()
	const parse = "package a\n\nfunc Count(n int) int {\n\tif n < 3 {\n\t\treturn 1\n\t}\n\treturn n\n}\n\n" +
		"func Limit(n int) int {\n\tif n < 3 {\n\t\treturn 1\n\t}\n\treturn n\n}\n\n" +
		"type T struct{}\n\nfunc (t *T) Run(n int) int {\n\tif n < 3 {\n\t\treturn 1\n\t}\n\treturn n\n}\n"
	surface := []variant.File{{Path: "a/x.go", Content: parse}, {Path: "b/x.go", Content: strings.ReplaceAll(parse, "package a", "package b")}}
	const background = "mode: count\nexample.com/m/a/x.go:4.1,5.2 3 7\n"
	for _, tc := range []struct{ name, baseline, coverage, want string }{
		{"nothing", "", "", "a/x.go:4:"},
		{"background", "", background + "example.com/m/a/x.go:11.1,13.2 3 7\n", "a/x.go:11:"},
		{"more than background", "", strings.Replace(background, "3 7", "3 8", 1) + "example.com/m/b/x.go:11.1,13.2 3 0\n", "a/x.go:4:"},
		{"package", "FAIL\texample.com/m/b\t0.1s\n", "", "b/x.go:4:"},
		{"test", "--- FAIL: TestLimit (0.00s)\nFAIL\texample.com/m/b\t0.1s\n", "", "b/x.go:11:"},
		{"events", `{"Action":"fail","Package":"example.com/m/b","Test":"TestLimit/of_three"}` + "\n", "", "b/x.go:11:"},
		{"line", "panic: index out of range\n\t/tmp/run-1/ws/b/x.go:21 +0x1d\n", "", "b/x.go:"},
		{"stack", "goroutine 7 [running]:\nexample.com/m/a.(*T).Run(0x1, 0x2)\n", "", "a/x.go:20:"},
		{"coverage", "", "mode: set\nexample.com/m/a/x.go:3.1,8.2 3 0\nexample.com/m/b/x.go:19.2,21.3 1 1\n", "b/x.go:20:"},
		{"garbage", "{\"Action\":\n\x00:::.go:99999999999999999999\nFAIL\n--- FAIL: \n", "mode: atomic\nx.go:1.1,2\n", "a/x.go:4:"},
	} {
		s := &variant.State{Surface: surface, Baseline: tc.baseline}
		p, err := repair.New(repair.Config{Coverage: [][]byte{[]byte(tc.coverage)}, Background: []byte(background)}).Next(t.Context(), s)
		if err != nil || !strings.HasPrefix(p.Note, tc.want) {
			t.Errorf("%s: begins with %q, %v; want %s", tc.name, p.Note, err, tc.want)
		}
	}
}

// TestSurface: only what may change does, and tests never do.
func TestSurface(t *testing.T) {
	t.Parallel()
	s := &variant.State{Surface: []variant.File{
		{Path: "broken.go", Content: "package p\n\nfunc {"}, {Path: "README.md", Content: "1 < 2"},
		{Path: "p_test.go", Content: "package p\n\nvar X = 1 < 2\n"}, {Path: "empty.go", Content: ""},
	}}
	if p, err := repair.New(repair.Config{}).Next(t.Context(), s); !errors.Is(err, variant.ErrExhausted) {
		t.Errorf("%+v, %v", p, err)
	}
	const src = "package p\n\ntype T[K any] struct{}\n\nvar N = 3\n\nfunc (*T[K]) A() int { return 1 }\n\nfunc B() int { return 1 }\n"
	s = &variant.State{Surface: []variant.File{{Path: "p.go", Content: src, Bodies: []string{"(*T).A"}}}}
	for g := repair.New(repair.Config{}); ; {
		edit, ok := next(t, g, s)
		if !ok {
			break
		}
		if !strings.HasPrefix(string(edit.Content), src[:64]) || !strings.HasSuffix(string(edit.Content), "func B() int { return 1 }\n") {
			t.Errorf("changed outside of the body:\n%s", edit.Content)
		}
	}
	if len(s.History) == 0 {
		t.Error("nothing was changed inside of the body")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := repair.New(repair.Config{}).Next(ctx, state("p.go", program(t, bugs[0].buggy))); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done: %v", err)
	}
}
