// SPDX-License-Identifier: Apache-2.0

package allowlist

import "fmt"

// maxAlternatives bounds what one pattern may expand to: braces multiply, and a policy file is small.
const maxAlternatives = 256

// expandBraces returns the patterns without braces that a valid pattern stands for. Braces may nest and may contain
// slashes; within a class a brace is a literal.
func expandBraces(text string) ([]string, error) {
	done, todo := []string{}, []string{text}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		open, parts, rest, ok := firstBraces(s)
		if !ok {
			done = append(done, s)
		}
		for _, part := range parts {
			todo = append(todo, s[:open]+part+rest)
		}
		if len(done)+len(todo) > maxAlternatives {
			return nil, fmt.Errorf("the braces stand for more than %d patterns", maxAlternatives)
		}
	}
	return done, nil
}

// firstBraces finds the first pair of braces: where it opens, the parts between its commas, and what follows it.
func firstBraces(s string) (open int, parts []string, rest string, ok bool) {
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[':
			i += len(class(s[i:])) - 1
		case '{':
			if depth == 0 {
				open, start = i, i+1
			}
			depth++
		case ',':
			if depth == 1 {
				parts, start = append(parts, s[start:i]), i+1
			}
		case '}':
			if depth--; depth == 0 {
				return open, append(parts, s[start:i]), s[i+1:], true
			}
		}
	}
	return 0, nil, "", false
}
