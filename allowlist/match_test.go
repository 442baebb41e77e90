// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"flag"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

var randomRuns = flag.Int("allowlist.random", 1, "how many times as much random data the matchers are compared on")

// The reference matchers below ask doublestar about one pattern after the other, braces and all. They share the folds
// with the compiled matcher, and nothing else.

// refExact reports whether an exact pattern matches a path.
func refExact(p, name string) bool {
	if strings.HasSuffix(p, "/") {
		p += "**"
	}
	if dir, deep := strings.CutSuffix(p, "/**"); deep && doublestar.MatchUnvalidated(dir, name) &&
		!doublestar.MatchUnvalidated(dir+"/**/*", name) {
		return false // doublestar takes dir for a match of dir/**
	}
	return doublestar.MatchUnvalidated(p, name)
}

// refProtects reports whether a protect pattern without braces covers a path.
func refProtects(p, name string) bool {
	for p = strings.TrimSuffix(p, "/"); strings.HasSuffix(p, "/**"); {
		p = strings.TrimSuffix(p, "/**")
	}
	for _, form := range []func(string) string{foldKey, foldSeparately, foldRunes, func(s string) string { return s }} {
		if refCovers(form(p), form(name)) {
			return true
		}
	}
	return false
}

func refCovers(p, key string) bool {
	if !strings.Contains(p, "/") {
		return slices.ContainsFunc(strings.Split(key, "/"), func(c string) bool { return doublestar.MatchUnvalidated(p, c) })
	}
	for prefix := key; prefix != "."; prefix = path.Dir(prefix) {
		if doublestar.MatchUnvalidated(p, prefix) {
			return true
		}
	}
	head := p
	if i := strings.IndexAny(p, "*?["); i >= 0 {
		head = p[:strings.LastIndex(p[:i], "/")+1] + "x"
	}
	return strings.HasPrefix(head, key+"/")
}

// randomFrom joins a few of the words.
func randomFrom(r *rand.Rand, sep string, words ...string) string {
	var b strings.Builder
	for i := range 1 + r.IntN(4) {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(words[r.IntN(len(words))])
	}
	return b.String()
}

func randomPattern(r *rand.Rand) string {
	p := randomFrom(r, "/", "a", "A", "b", "ab", "a.b", "*", "**", "a*", "*b", "*.b", "?", "?b", "[ab]", "[!a]b", "*a*", "ß",
		"{a,b}", "{a/b,*}", "a{b,.b}", "{a,{b,ab}}", "[[]", "[a-c]?", "[!A-C]b", "[^A]", "s?")
	if r.IntN(5) == 0 {
		p += "/"
	}
	return p
}

func randomPath(r *rand.Rand) string {
	return randomFrom(r, "/", "a", "A", "b", "B", "ab", "aB", "a.b", "c", "abc", "ss", "ß", "[", "a.b.b", "bb", "ä", "a\uff0fb", "ßb", "\ufb01b", "İ")
}

// TestCompiledEqualsLinear compares the compiled matcher with one that asks rule by rule, on random rules and paths.
func TestCompiledEqualsLinear(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	hits := [4]int{}
	for range 300 * *randomRuns {
		var protect []*protectRule
		var exact []pattern
		trie := &node{}
		for i := range 1 + r.IntN(8) {
			text := randomPattern(r)
			if p, faults := parsePattern(text, protectPattern); len(faults) == 0 {
				protect = append(protect, &protectRule{pattern: p, rule: Rule{Pattern: text}})
			}
			if p, faults := parsePattern(text, exactPattern); len(faults) == 0 {
				exact = append(exact, p)
				for _, alt := range p.alts {
					trie.add(alt, i)
				}
			}
		}
		set := compileProtection(protect)
		for range 20 {
			name := randomPath(r)
			want := slices.ContainsFunc(protect, func(p *protectRule) bool { return refProtectsAny(t, p.rule.Pattern, name) })
			if got := set.match(name) >= 0; got != want {
				t.Fatalf("protect %v, path %q: compiled %v, linear %v", protect, name, got, want)
			}
			hits[bit(want)]++
			want = slices.ContainsFunc(exact, func(p pattern) bool { return refExact(p.text, name) })
			if got := (&Policy{released: trie}).releases(name); got != want {
				t.Fatalf("exact %v, path %q: compiled %v, linear %v", exact, name, got, want)
			}
			hits[2+bit(want)]++
		}
	}
	if slices.Min(hits[:]) < 300 {
		t.Errorf("outcomes %v: the random data decides nothing", hits)
	}
}

func refProtectsAny(t *testing.T, p, name string) bool {
	t.Helper()
	alts, err := expandBraces(p)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(alts, func(alt string) bool { return refProtects(alt, name) })
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestOverlapIsSound looks for paths that two patterns share although overlap says that there is none.
func TestOverlapIsSound(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	apart := 0
	for range 6000 {
		a, fa := parsePattern(randomPattern(r), exactPattern)
		b, fb := parsePattern(randomPattern(r), exactPattern)
		if len(fa)+len(fb) > 0 || overlap(a, b) {
			continue
		}
		apart++
		for range 10 {
			if name := randomPath(r); refExact(a.text, name) && refExact(b.text, name) {
				t.Fatalf("%q and %q both match %q, and do not overlap", a.text, b.text, name)
			}
		}
	}
	if apart < 300 {
		t.Errorf("only %d pairs are apart", apart)
	}
}

// TestWhollyProtectedIsSound looks for unprotected paths that match a pattern of which it was said that there is none.
func TestWhollyProtectedIsSound(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	whole := 0
	for range 6000 {
		p, f1 := parsePattern(randomPattern(r), protectPattern)
		e, f2 := parsePattern(randomPattern(r), exactPattern)
		if len(f1)+len(f2) > 0 {
			continue
		}
		set := compileProtection([]*protectRule{{pattern: p}})
		if _, ok := set.whole(e, nil); !ok {
			continue
		}
		whole++
		for range 20 {
			if name := randomPath(r); refExact(e.text, name) && set.match(name) < 0 {
				t.Fatalf("protect %q leaves %q of %q open, and calls it wholly protected", p.text, name, e.text)
			}
		}
	}
	if whole < 150 {
		t.Errorf("only %d patterns are wholly protected", whole)
	}
}

func TestPathCannotChooseTheTime(t *testing.T) {
	t.Parallel()
	p, faults := parsePattern("**/a/**/a/**/a/**/a/**/a/**/b", protectPattern)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	// A search that goes back would take 2047 over 5 steps, which is longer than any test may run.
	long := strings.TrimSuffix(strings.Repeat("a/", 2047), "/")
	if got := compileProtection([]*protectRule{{pattern: p}}).match(long); got != -1 {
		t.Errorf("match = %d, want none", got)
	}
}
