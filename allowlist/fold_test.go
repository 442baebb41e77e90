// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"slices"
	"testing"
)

func TestFoldKey(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, want string }{
		{"", ""}, {"abc-1.x", "abc-1.x"}, {"Makefile", "makefile"}, {"STRASSE", "strasse"}, {"straße", "strasse"}, {"ẞ", "ss"},
		{"\u212aeys", "keys"},            // Kelvin sign
		{"cafe\u0301", "caf\u00e9"},      // two spellings of one letter
		{".g\u200cit", ".git"},           // a rune that HFS+ ignores
		{"\uff0e\uff47it", ".git"},       // full width
		{"con\ufb01g", "config"},         // ligature
		{".\u017f\u017fh", ".ssh"},       // long s
		{"a\u00ad\ufe0f\u3164b", "ab"},   // soft hyphen, variation selector, filler
		{"a\u034f\u0301", "\u00e1"},      // what the joiner kept apart
		{"x\uff0f.GIT", "x/.git"},        // a slash that is none
		{"A\xffÉ\xc3", "a\xffé\xc3"},     // names on disk need not be UTF-8
		{"\xff.SO", "\xff.so"},           //
		{"A\ufffdB", "a\ufffdb"},         // a replacement character is a character
		{"\u0600", "\u0600"},             // a format character that shows
		{"ΣΊΣΥΦΟΣ", "σίσυφοσ"},           // final sigma
		{"\u0130", "i\u0307"},            // no locale decides
		{"\u00bd \u2163", "1\u20442 iv"}, // compatibility
	}
	for _, c := range cases {
		if got := foldKey(c.name); got != c.want {
			t.Errorf("foldKey(%+q) = %+q, want %+q", c.name, got, c.want)
		}
		if again := foldKey(c.want); again != c.want {
			t.Errorf("foldKey(%+q) = %+q: not stable", c.want, again)
		}
	}
}

// FuzzFoldKey: folding never fails, and a key is equal for names that differ in ASCII case.
func FuzzFoldKey(f *testing.F) {
	for _, seed := range []string{"a", "ß", "\xff", "a\u034f\u0301", "\u212a", "Ａ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if foldKey(s) != foldKey(lowerASCII(s)) {
			t.Errorf("%+q and its lower-case form have different keys", s)
		}
		if slices.ContainsFunc([]rune(foldValid(string([]rune(s)))), ignorable) {
			t.Errorf("the key of %+q has an ignorable rune", s)
		}
	})
}
