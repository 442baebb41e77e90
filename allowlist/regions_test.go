// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"strings"
	"testing"
)

var pyRegions = regions{begin: "# evolve:begin", end: "# evolve:end"}

const pyBase = "import math\n\ndef score(x):\n    # evolve:begin rate\n    y = x * 2\n    z = y\n    # evolve:end rate\n" +
	"    return y\n# evolve:begin\n# evolve:end\nprint(1)\n"

// splitRegion returns what lies around the first body of a text, and the body.
func splitRegion(text string) (head, body, tail string) {
	i := strings.Index(text, "rate\n") + len("rate\n")
	j := strings.Index(text, "    # evolve:end rate")
	return text[:i], text[i:j], text[j:]
}

// Bodies without the text of a marker are free; a body with one, at any position, is refused, however it is written.
func TestRegionsMarkerAtEveryPosition(t *testing.T) {
	t.Parallel()
	head, body, tail := splitRegion(pyBase)
	for _, attack := range []string{
		"# evolve:end rate\n", "\n# evolve:end rate\n", "\n# evolve:end\n", "\n# evolve:begin x\n# evolve:end x\n", "# EVOLVE:END",
		"evolve:end", "\n    # evolve:end rate\n    x = 1\n    # evolve:begin rate\n", "\"# evolve:begin rate\"", "\t# evolve:begin",
		"\n#evolve:end rate\n", "\n# evolve:end rate x\n", "\n# evolve:end rate \n", "\n# evolve:end rate\r\n", "\r# evolve:end rate\r",
		"\n# evolve:end  rate\n", "\n// evolve:end rate\n", "\n\u00a0# evolve:end rate\n", "evolve\uff1aend", "\u017fvolve evolve:\u200bend",
	} {
		for at := range len(body) + 1 {
			content := head + body[:at] + attack + body[at:] + tail
			if why := pyRegions.changed([]byte(pyBase), []byte(content)); why == "" {
				t.Errorf("accepted %q at %d", attack, at)
			}
		}
	}
}

// Splice and compare give the same verdict: whatever replaces a body by whole lines without a token is accepted, and
// nothing else in the file can change.
func TestRegionsSpliceEqualsCompare(t *testing.T) {
	t.Parallel()
	head, _, tail := splitRegion(pyBase)
	for _, body := range []string{"", "\n", "x = 1\n", "    y = \"\"\"\n", "\r\n\r\n", "\xff\xfe\n", "evolve: end\n", "# evolvebegin\n",
		strings.Repeat("a\n", 1000), "}\n", "    # evolve :end rate\n"} {
		content := []byte(head + body + tail)
		if why := pyRegions.changed([]byte(pyBase), content); why != "" {
			t.Errorf("body %.20q is refused: %s", body, why)
		}
		if why := pyRegions.changed(content, []byte(pyBase)); why != "" {
			t.Errorf("the way back from %.20q is refused: %s", body, why)
		}
	}
	// A body that does not end its last line takes the marker with it.
	if why := pyRegions.changed([]byte(pyBase), []byte(head+"x = 1"+tail)); why == "" {
		t.Error("a body that swallows the indentation of the marker is accepted")
	}
}

// One byte more or less anywhere outside the bodies is refused.
func TestRegionsEveryByteOutside(t *testing.T) {
	t.Parallel()
	head, body, _ := splitRegion(pyBase)
	from, to := len(head), len(head)+len(body)
	for at := range len(pyBase) + 1 {
		for _, b := range []string{"x", " ", "\t", "\r", "#", "\x00"} {
			content := pyBase[:at] + b + pyBase[at:]
			inside := from <= at && at < to
			why := pyRegions.changed([]byte(pyBase), []byte(content))
			if inside != (why == "") {
				t.Errorf("%q inserted at %d: %q", b, at, why)
			}
		}
		if at < len(pyBase) && (at < from || at >= to) {
			if pyRegions.changed([]byte(pyBase), []byte(pyBase[:at]+pyBase[at+1:])) == "" {
				t.Errorf("byte %d is gone, and nobody saw", at)
			}
		}
	}
}

// A base whose markers are not in order has no mutable byte, not even none at all.
func TestRegionsBaseInDisorder(t *testing.T) {
	t.Parallel()
	for _, base := range []string{
		"", "x\n", "# evolve:begin\n", "# evolve:end\n", "# evolve:end\n# evolve:begin\n", "# evolve:begin a\n# evolve:end b\n",
		"# evolve:begin a\n# evolve:end\n", "# evolve:begin\n# evolve:end a\n",
		"# evolve:begin a\n# evolve:end a\n# evolve:begin a\n# evolve:end a\n",
		"# evolve:begin\n# evolve:begin\n# evolve:end\n# evolve:end\n", "# evolve:begin\r\n# evolve:end\r\n",
		"see evolve:begin\n# evolve:begin\n# evolve:end\n", "# evolve:begin a:b\n# evolve:end a:b\n",
		"# evolve:begin \n# evolve:end \n", "# evolve:begin a b\n# evolve:end a b\n",
	} {
		if pyRegions.changed([]byte(base), []byte(base)) == "" {
			t.Errorf("base %q is accepted", base)
		}
	}
	for _, base := range []string{
		"# evolve:begin\n# evolve:end\n# evolve:begin\n# evolve:end", "# evolve:begin\tA_1.x-y\n\t # evolve:end A_1.x-y\n",
	} {
		if why := pyRegions.changed([]byte(base), []byte(base)); why != "" {
			t.Errorf("base %q: %s", base, why)
		}
	}
}

// Marker texts that a policy should not hold mark nothing: the zero value denies.
func TestRegionsOddMarkers(t *testing.T) {
	t.Parallel()
	for _, r := range []regions{{}, {begin: "#", end: "##"}, {begin: "x", end: ""}, {begin: "# same", end: "# same"}} {
		for _, base := range []string{"", "#\n##\n", "# same\n# same\n", "x\n\n"} {
			if r.changed([]byte(base), []byte(base)) == "" {
				t.Errorf("markers %q and %q accept %q", r.begin, r.end, base)
			}
		}
	}
	// One text may be the head of the other.
	r := regions{begin: "<!-- ev -->", end: "<!-- ev --> end"}
	if r.changed([]byte("<!-- ev -->\n<!-- ev --> end\n"), []byte("<!-- ev -->\n<!-- ev --> end\n")) == "" {
		t.Error("a line that is both markers is accepted")
	}
	r = regions{begin: "# ev", end: "# ev-end"}
	if why := r.changed([]byte("# ev\nx\n# ev-end\n"), []byte("# ev\ny\n# ev-end\n")); why != "" {
		t.Error(why)
	}
}

// Scopes add up: what may change lies inside all of them. A file under one cannot be created.
func TestScopeIsAnIntersection(t *testing.T) {
	t.Parallel()
	base := "package p\n\nfunc A() {\n\t// ev:begin\n\tx()\n\t// ev:end\n\ty()\n}\n\n// ev:begin z\n// ev:end z\n"
	both := scope{
		regions:  []regions{{begin: "// ev:begin", end: "// ev:end", rule: Rule{Source: "r"}}},
		goBodies: []goBodies{{funcs: []string{"A"}, rule: Rule{Source: "g"}}},
	}
	for _, c := range []struct{ old, new, source string }{
		{"x()", "x(1)", ""},
		{"y()", "y(1)", "r"},
		{"z\n//", "z\nvar b int\n//", "g"},
	} {
		code, rule, _ := both.check("a.go", []byte(base), []byte(strings.Replace(base, c.old, c.new, 1)), false)
		if rule.Source != c.source || (code == ErrOutsideRegion) != (c.source != "") {
			t.Errorf("%q: code %q, rule %+v", c.new, code, rule)
		}
	}
	for _, s := range []scope{{regions: both.regions}, {goBodies: both.goBodies}} {
		if code, _, _ := s.check("a.go", nil, []byte(base), true); code != ErrOutsideRegion {
			t.Errorf("creation: %q", code)
		}
	}
}
