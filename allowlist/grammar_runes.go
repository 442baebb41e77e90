// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// checkRunes looks for runes that make two names look alike, or that forge lines in a log or a patch. The first one
// decides the code.
func checkRunes(path string) (Code, string) {
	for i := 0; i < len(path); {
		// Almost every path is ASCII, where only controls are refused, so the tables are not asked.
		if b := path[i]; b < utf8.RuneSelf {
			if b < ' ' || b == 0x7f {
				return ErrPathInvalid, fmt.Sprintf("control character %U", rune(b))
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(path[i:])
		if code, what := checkRune(r); code != "" {
			return code, fmt.Sprintf("%s %U", what, r)
		}
		i += size
	}
	return "", ""
}

// checkRune tests one rune beyond ASCII.
func checkRune(r rune) (Code, string) {
	switch {
	case unicode.Is(unicode.Cc, r):
		return ErrPathInvalid, "control character"
	case unicode.Is(unicode.Cf, r):
		return ErrPathDisguised, "format character"
	case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return ErrPathDisguised, "invisible character"
	case unicode.Is(unicode.Co, r):
		return ErrPathDisguised, "private-use character"
	case unicode.Is(unicode.Z, r):
		return ErrPathDisguised, "space or separator"
	}
	return "", ""
}

// ignorable is the property Default_Ignorable_Code_Point, which package unicode lacks. The definition is that of the
// Unicode standard; the runes excepted are format characters that are visible.
func ignorable(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return false
	case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return true
	case !unicode.Is(unicode.Cf, r):
		return false
	}
	interlinear := 0xfff9 <= r && r <= 0xfffb
	hieroglyph := 0x13430 <= r && r <= 0x1343f
	return !interlinear && !hieroglyph && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}
