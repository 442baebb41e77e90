// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// foldKey maps all spellings of a name that some file system, or a reader's eye, takes for the same to one key: NFKC,
// full case fold, NFKC, default-ignorable runes removed. It works on any bytes, since names on disk need not be UTF-8.
// A key may contain a slash that its name does not (U+FF0F), so fold whole paths before they are split, or use
// foldSeparately: what protects a name asks about both.
func foldKey(s string) string {
	upper := false
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return foldUnicode(s)
		}
		upper = upper || 'A' <= s[i] && s[i] <= 'Z'
	}
	if !upper {
		return s
	}
	return lowerASCII(s)
}

// foldSeparately folds each component by itself. A slash that folding makes stays what it was, one rune of a name.
func foldSeparately(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(foldKey(part), "/", "\uff0f")
	}
	return strings.Join(parts, "/")
}

// foldRunes folds case and keeps the number of runes, so that wildcards which count runes still find what they name.
func foldRunes(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		if 'A' <= least && least <= 'Z' {
			least += 'a' - 'A' // the same as foldKey, where both can
		}
		return least
	}, s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// lowerASCII exists because strings.ToLower first looks for what foldKey has already ruled out.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + ('a' - 'A')
		}
	}
	return string(b)
}

// foldUnicode folds what lies between bytes that are not UTF-8, and keeps those.
func foldUnicode(s string) string {
	if utf8.ValidString(s) {
		return foldValid(s)
	}
	var out strings.Builder
	for len(s) > 0 {
		bad := strings.IndexRune(s, utf8.RuneError) // finds the first invalid byte, too
		if bad < 0 {
			bad = len(s)
		}
		out.WriteString(foldValid(s[:bad]))
		s = s[bad:]
		if s != "" {
			_, size := utf8.DecodeRuneInString(s)
			out.WriteString(s[:size])
			s = s[size:]
		}
	}
	return out.String()
}

func foldValid(s string) string {
	// A Caser is documented as stateful, so each call has its own.
	folded := norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s)))
	key := strings.Map(func(r rune) rune {
		if ignorable(r) {
			return -1
		}
		return r
	}, folded)
	if key == folded {
		return key
	}
	// A rune that was removed may have kept two others apart that now combine. Each round removes at least one.
	return foldValid(key)
}
