// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

// Folding may change the number of runes in a name, make a slash, and turn a letter into one that a class names. No name
// gets out of a pattern that it matches by that.
func TestProtectsWhatIsWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"tests/*_test.py", "tests/a\uff0fb_test.py", true}, {"TESTS/*_test.py", "tests/a\uff0fb_test.py", true},
		{"tests/*_test.py", "tests/a\u2100b_test.py", true}, {"tests/*_test.py", "tests/a/b_test.py", false},
		{"x/stra?e.cfg", "x/straße.cfg", true}, {"X/STRA?E.cfg", "x/straße.cfg", true}, {"x/stra??e.cfg", "x/straße.cfg", true},
		{"x/???.cfg", "x/\ufb01ab.cfg", true}, {"x/????.cfg", "x/\ufb01ab.cfg", true}, {"x/?.cfg", "x/\ufb01ab.cfg", false},
		{"conf?gs/**", "conf\u0130gs/a", true}, {"conf?gs/**", "conf\u0130gs", true}, {"conf?gs", "y/conf\u0130gs/a", true},
		{"x/[!a]k.cfg", "x/ßk.cfg", true}, {"x/[!a-z]k.cfg", "x/Ak.cfg", true}, {"x/[!A-Z]k.cfg", "x/ak.cfg", true},
		{"x/[^A-Z]k.cfg", "x/ak.cfg", true}, {"x/[!a-z]k.cfg", "x/ak.cfg", false}, {"x/{y,[!a]}k.cfg", "x/ßk.cfg", true},
		{"x/a?b.cfg", "x/a\uff0fb.cfg", true}, // the way out that the error about a slash names
		{"x/a?b.cfg", "x/a\uff0ab.cfg", true}, // and about a star
		{"x/[a-c]k?.cfg", "x/BKß.cfg", true},
	} {
		p, err := New(Config{
			Surface: []SurfaceRule{{Paths: []string{"**"}, Ops: []Op{Modify}}}, Protect: []string{c.pattern}, Gate: []string{},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, got := p.protects(c.path); got != c.want {
			t.Errorf("%+q protects %+q: %v", c.pattern, c.path, got)
		}
		if d := p.Explain(Modify, c.path); (d.Code == ErrProtected) != c.want || d.Allowed == c.want {
			t.Errorf("%+q, path %+q: %v", c.pattern, c.path, d)
		}
	}
}

// The names that the default list is for are those that its patterns match, too.
func TestDefaultsProtectWhatIsWritten(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, "version: 1\nsurface: [{paths: ['**'], ops: [modify]}]\ngate: []\n")
	for _, path := range []string{"requirements\uff0fdev.txt", "a/Requirements\u2100\uff0f.TXT"} {
		if d := p.Explain(Modify, path); d.Code != ErrProtected {
			t.Errorf("%+q: %v", path, d)
		}
	}
}

// Patterns with one fold may still protect different names, and then both may stand.
func TestEqualFoldsAreNotEqualPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"x/[!a-z]", "x/[!A-Z]", false}, {"x/ß?", "x/ss?", false}, {"x/ß", "x/ss", true}, {"x/*.PEM", "x/*.pem", true},
		{"x/[a-z]", "X/[A-Z]", true}, {"x/[!a]", "x/[!a]/**", true},
	} {
		_, err := New(Config{
			Surface: []SurfaceRule{{Paths: []string{"s/**"}, Ops: []Op{Modify}}}, Protect: []string{c.a, c.b}, Gate: []string{},
		})
		if (err != nil) != c.same {
			t.Errorf("%q and %q: %v", c.a, c.b, err)
		}
	}
}

// rawMatch compares component by component: for doublestar, a negated class in a longer pattern also matches a slash.
func rawMatch(t *testing.T, text, path string) bool {
	t.Helper()
	alts, err := expandBraces(text)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(alts, func(alt string) bool {
		return rawComponents(strings.Split(strings.TrimSuffix(alt, "/"), "/"), strings.Split(path, "/"))
	})
}

func rawComponents(p, names []string) bool {
	switch {
	case len(p) == 0:
		return len(names) == 0
	case p[0] == "**":
		return rawComponents(p[1:], names) || len(names) > 0 && rawComponents(p, names[1:])
	}
	return len(names) > 0 && doublestar.MatchUnvalidated(p[0], names[0]) && rawComponents(p[1:], names[1:])
}

// TestRawMatchIsProtected: whatever a pattern matches as it is written is protected.
func TestRawMatchIsProtected(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	hits, unfolded := 0, 0
	for range 28000 * *randomRuns {
		text := randomFrom(r, "", "a", "K", "ß", "\u0130", "?", "*", "/", "/", "[!a]", "[^A-Z]", "[a-c]", "{a,ß?}", "\ufb01") + "/" +
			randomFrom(r, "", "a", "B", "ß", "?", "*", "[!a-z]", "[A-C]", "**/", ".b")
		p, faults := parsePattern(text, protectPattern)
		if len(faults) > 0 {
			continue
		}
		set := compileProtection([]*protectRule{{pattern: p}})
		for range 8 {
			path := randomFrom(r, "", "a", "A", "k", "K", "\u212a", "ß", "\u0130", "/", "\ufb01", "\xff", "\u1e9e") + "/" +
				randomFrom(r, "", "a", "B", "b", "ß", "\uff0f", "\u2100", ".b", "é")
			// No name is empty, on disk or in an edit.
			if strings.Contains("/"+path+"/", "//") || !rawMatch(t, text, path) {
				continue
			}
			hits++
			if set.folded.match(foldKey(path), -1) < 0 {
				unfolded++
			}
			if set.match(path) < 0 {
				t.Fatalf("%+q matches %+q and does not protect it", text, path)
			}
		}
	}
	if hits < 1000 || unfolded < 100 {
		t.Errorf("%d matches, %d of them lost by folding: the random data decides nothing", hits, unfolded)
	}
}
