// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"fmt"
)

// maxSearched bounds the bytes that the text parsers search for one input. Every block searches the whole file, so many
// small blocks on a large file would cost the product of the two. It leaves room for 256 blocks on a file of 1 MiB.
const maxSearched = 256 << 20

// searchBudget counts what has been searched.
type searchBudget struct{ left int }

func newSearchBudget() *searchBudget { return &searchBudget{left: maxSearched} }

// spend takes n bytes from the budget.
func (b *searchBudget) spend(n int, at string) error {
	b.left -= n
	if b.left < 0 {
		return &parseRefusal{ErrTooLarge, at, "too many blocks for files of this size"}
	}
	return nil
}

// findOnce returns where needle lies in text. It must be there exactly once, and occurrences that overlap count: an edit
// that could land in two places lands in one that its author did not name.
func findOnce(text, needle []byte, what, at string) (int, error) {
	i := bytes.Index(text, needle)
	if i < 0 {
		return 0, &parseRefusal{ErrConflict, at, what + " does not occur (0 times); it must occur exactly once"}
	}
	if len(needle) > 0 && !bytes.Contains(text[i+1:], needle) {
		return i, nil
	}
	n := countOverlapping(text, needle)
	return 0, &parseRefusal{ErrConflict, at, fmt.Sprintf("%s occurs %d times; it must occur exactly once", what, n)}
}

// countOverlapping counts occurrences in linear time (Knuth, Morris and Pratt), also where they overlap heavily.
func countOverlapping(text, needle []byte) int {
	if len(needle) == 0 {
		return len(text) + 1
	}
	border := make([]int, len(needle)+1) // border[i]: longest proper prefix of needle[:i] that is also its suffix
	for i, k := 1, 0; i < len(needle); i++ {
		for k > 0 && needle[i] != needle[k] {
			k = border[k]
		}
		if needle[i] == needle[k] {
			k++
		}
		border[i+1] = k
	}
	n, k := 0, 0
	for _, c := range text {
		for k == len(needle) || k > 0 && c != needle[k] {
			k = border[k]
		}
		if c == needle[k] {
			k++
		}
		if k == len(needle) {
			n++
		}
	}
	return n
}
