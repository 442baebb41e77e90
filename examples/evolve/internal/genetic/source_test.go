// SPDX-License-Identifier: Apache-2.0

package genetic

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever is bred survives the way through Go source, in both forms.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	b := &breeder{rand.New(rand.NewPCG(1, 2)), 150}
	parents := []Expr{{{Op: Neg}, {Op: Gap}}}
	for range 2000 {
		e := b.child(parents[b.random.IntN(len(parents))], parents[b.random.IntN(len(parents))])
		if !e.valid(Number) {
			t.Fatalf("bred what is not valid: %v", []Gene(e))
		}
		parents = append(parents, e)
		got, err := Parse(e.String())
		if err != nil || cmp.Diff(e, got) != "" {
			t.Fatalf("%s: %v\n%s", e, err, cmp.Diff(e, got))
		}
		got, err = ParseFunc([]byte("package p\n\nfunc Score(item, gap, capacity float64) float64 {"+e.Body()+"}\n"), "Score")
		if err != nil || cmp.Diff(e, got) != "" {
			t.Fatalf("%s: %v\n%s", e.Body(), err, cmp.Diff(e, got))
		}
	}
}

func TestBody(t *testing.T) {
	t.Parallel()
	e, err := Parse("pick(gap <= 2 && !(item < gap), 4, pick(gap < 20, -(gap-item)*0.5, root(div(gap, item))))")
	if err != nil {
		t.Fatal(err)
	}
	want := `
	if gap <= 2 && !(item < gap) {
		return 4
	}
	if gap < 20 {
		return -(gap - item) * 0.5
	}
	return root(div(gap, item))
`
	if diff := cmp.Diff(want, e.Body()); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "gap +", "gap < 1", "bins", "os.Exit(1)", "func() float64 { return 1 }()", "root(gap, item)", "root()", "min(gap)", "min(gap, item, 1)",
		"gap % 2", "gap / item", "\"a\"", "'a'", "pick(1, 2, 3)", "!gap", "-(1 < 2)", "+gap", "^gap", "<-gap", "*gap", "&gap", "gap[0]", "div(gap...)", "1i",
		"pick", "min", "gap(1)", "gap()", strings.Repeat("gap + ", 40) + "gap", strings.Repeat("root(", 20) + "gap" + strings.Repeat(")", 20),
	} {
		if e, err := Parse(text); !errors.Is(err, ErrGrammar) || e != nil {
			t.Errorf("Parse(%q) = %v, %v", text, e, err)
		}
	}
	for _, body := range []string{
		"", "return", "return gap, gap", "for {}\nreturn 1", "x := gap\nreturn x", "if gap < 1 {}\nreturn gap", "if gap < 1 { return 1 }",
		"if x := 1.0; x < gap { return 1 }\nreturn 2", "if gap < 1 { return 1 } else { return 2 }\nreturn 3", "return 1\nreturn 2", "panic(1)",
	} {
		if e, err := ParseFunc([]byte("package p\nfunc Score() float64 {\n"+body+"\n}\n"), "Score"); !errors.Is(err, ErrGrammar) || e != nil {
			t.Errorf("ParseFunc(%q) = %v, %v", body, e, err)
		}
	}
	for _, file := range []string{"", "package p", "package p\nfunc Score() float64", "package p\nfunc (T) Score() float64 { return 1 }"} {
		if _, err := ParseFunc([]byte(file), "Score"); !errors.Is(err, ErrGrammar) {
			t.Errorf("ParseFunc(%q): %v", file, err)
		}
	}
}
