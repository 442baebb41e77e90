// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"strings"
)

// compareEdits judges each edit against the others: the set must make sense whatever order it is written in.
func compareEdits(changes []change) []*refusal {
	verdicts := make([]*refusal, len(changes))
	count := map[string]int{}
	spellings := map[string]map[string]bool{} // fold key of a path or of one of its directories → spellings
	for _, c := range changes {
		count[c.Path]++
		for _, prefix := range prefixes(c.Path) {
			key := foldPath(prefix)
			if spellings[key] == nil {
				spellings[key] = map[string]bool{}
			}
			spellings[key][prefix] = true
		}
	}
	for i, c := range changes {
		verdicts[i] = compareEdit(c.Path, count, spellings)
	}
	return verdicts
}

func compareEdit(path string, count map[string]int, spellings map[string]map[string]bool) *refusal {
	if count[path] > 1 {
		return &refusal{ErrConflict, fmt.Sprintf("%d edits name this path", count[path])}
	}
	all := prefixes(path)
	for _, above := range all[:len(all)-1] {
		if count[above] > 0 {
			return &refusal{ErrConflict, fmt.Sprintf("it lies below %+q, which the set edits as a file", above)}
		}
	}
	for _, prefix := range all {
		if len(spellings[foldPath(prefix)]) > 1 {
			return &refusal{ErrCaseCollision, fmt.Sprintf("another edit spells %+q in another way", prefix)}
		}
	}
	return nil
}

// prefixes returns the directories of a path, from the top, and the path itself.
func prefixes(path string) []string { return append(ancestors(path)[1:], path) }

// foldPath folds each component by itself: folding can turn other runes into a slash.
func foldPath(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = foldKey(part)
	}
	return strings.Join(parts, "\x00")
}

// overLimits judges the whole set. Edits that are denied for another reason count too, so that a generator hears of
// both at once.
func overLimits(changes []change, l Limits) []Decision {
	var files, created, deleted, lines, total int64
	for _, c := range changes {
		files++
		switch c.Op {
		case Create:
			created++
		case Delete:
			deleted++
		}
		total += int64(len(c.Content))
		lines += int64(changedLines(c, l.ChangedLines))
	}
	var over []Decision
	for _, x := range []struct {
		name       string
		got, limit int64
	}{
		{"files", files, int64(l.Files)},
		{"created", created, int64(l.Created)},
		{"deleted", deleted, int64(l.Deleted)},
		{"changed_lines", lines, int64(l.ChangedLines)},
		{"total_bytes", total, l.TotalBytes},
	} {
		if x.got > x.limit {
			over = append(over, Decision{
				Code:   ErrTooLarge,
				Detail: fmt.Sprintf("%s of the set is %d, the limit is %d", x.name, x.got, x.limit),
				Hint:   hints[ErrTooLarge],
			})
		}
	}
	return over
}

// changedLines counts lines added and removed. Content that alone is far over the limit is not compared: the answer
// would be the same, and the comparison is work that the generator would make us do.
func changedLines(c change, limit int) int {
	if c.Op != Create && !c.read {
		return 0 // denied before the file was read: what would have changed is not known
	}
	old, content := splitAllLines(c.old), splitAllLines(c.Content)
	added, removed := len(content), len(old)
	if added == 0 || removed == 0 || abs(added-removed) > limit {
		return added + removed
	}
	n := 0
	for _, op := range diffSplit(old, content) {
		n += len(op.removed) + len(op.added)
	}
	return n
}

func abs(n int) int { return max(n, -n) }
