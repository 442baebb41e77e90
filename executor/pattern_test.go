// SPDX-License-Identifier: Apache-2.0

package executor_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

// expand writes out every text that a valid pattern of literals and braces stands for.
func expand(pattern string) []string {
	open := unescaped(pattern, 0, '{')
	if open < 0 {
		return []string{literal(pattern)}
	}
	var texts []string
	begin, depth := open+1, 0
	for i := begin; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case depth == 0 && (c == ',' || c == '}'):
			texts = append(texts, pattern[begin:i])
			begin = i + 1
			if c == '}' {
				i = len(pattern)
			}
		}
	}
	var all []string
	for _, text := range texts {
		all = append(all, expand(pattern[:open]+text+pattern[begin:])...)
	}
	return all
}

// unescaped returns the first place of c that no backslash takes the meaning from, or -1.
func unescaped(pattern string, from int, c byte) int {
	for i := from; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case c:
			return i
		}
	}
	return -1
}

func literal(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' {
			i++
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}

// Validate judges a pattern without writing out its alternatives; it must come to the same end as if it did.
func TestPatternsAgainstExpansion(t *testing.T) {
	t.Parallel()
	src := rand.New(rand.NewPCG(3, 4))
	const alphabet = `...//{{,,}}\ab`
	s := valid(t)
	s.ArtifactDir = t.TempDir()
	judged := map[bool]int{}
	for range 40_000 {
		pattern := make([]byte, 1+src.IntN(14))
		for i := range pattern {
			pattern[i] = alphabet[src.IntN(len(alphabet))]
		}
		p := string(pattern)
		if !doublestar.ValidatePattern(p) || strings.Count(p, "{") > 8 {
			continue
		}
		leaves := slices.ContainsFunc(expand(p), func(text string) bool {
			return strings.HasPrefix(text, "/") || slices.Contains(strings.Split(text, "/"), "..")
		})
		s.Artifacts = []string{p}
		if err := s.Validate(); (err != nil) != leaves {
			t.Fatalf("pattern %q stands for %q: %v", p, expand(p), err)
		}
		judged[leaves]++
	}
	if judged[true] < 500 || judged[false] < 500 {
		t.Errorf("only %v were judged", judged)
	}
}
