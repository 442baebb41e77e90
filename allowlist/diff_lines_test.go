// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"strings"
	"testing"
)

// A carriage return ends a line for those who read the file, and so it does for the limit.
func TestChangedLinesCountsCarriageReturns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old, content string
		want         int
	}{
		{"", "a\rb\rc", 3}, {"", "a\rb\rc\r", 3}, {"", "a\rb\rc\n", 3}, {"", "a\r\nb\r\n", 2}, {"", "a\n\rb", 3}, {"", "\r\r\n", 2},
		{"", strings.Repeat("x\r", 500), 500}, {"a\n", "a\n" + strings.Repeat("x\r", 500) + "\n", 500}, {"a\rb\rc\n", "a\rB\rc\n", 2},
		{"a\nb\n", "a\nb", 2}, {"a\n", "a\r\n", 2}, {"a\r", "a\r", 0}, {"", "\n", 1}, {"", "", 0},
	} {
		ch := change{Edit: Edit{Op: Modify, Content: []byte(c.content)}, old: []byte(c.old), read: true}
		if got := changedLines(ch, 1<<30); got != c.want {
			t.Errorf("%q to %q: %d lines, want %d", c.old, c.content, got, c.want)
		}
	}
	// Patches still know one line end only.
	if got := len(diffLines([]byte("a\rb\n"), []byte("a\rc\n"))[1].removed); got != 1 {
		t.Errorf("a carriage return splits %d lines of a diff", got)
	}
}
