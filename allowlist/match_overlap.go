// SPDX-License-Identifier: Apache-2.0

package allowlist

import "strings"

// The functions here err on one side: they report that two patterns may have a name in common unless it is certain that
// they have none. What is certain is that a rule is dead, and only then is a policy refused.

// overlap reports whether some path may match both of two exact patterns.
func overlap(a, b pattern) bool {
	for _, x := range a.alts {
		for _, y := range b.alts {
			if overlapComponents(x, y) {
				return true
			}
		}
	}
	return false
}

// overlapComponents fills a table from the end: cell (i, j) says whether the rest of a and the rest of b overlap.
func overlapComponents(a, b []string) bool {
	return intersect(len(a), len(b),
		func(i int) bool { return a[i] == "**" },
		func(j int) bool { return b[j] == "**" },
		func(i, j int) bool { return overlapNames(a[i], b[j]) })
}

// overlapNames reports whether some name may match both of two components.
func overlapNames(a, b string) bool {
	if a == b {
		return true
	}
	if !hasWildcard(a) && !hasWildcard(b) {
		return false
	}
	a, b = onlyStars(a), onlyStars(b)
	return intersect(len(a), len(b),
		func(i int) bool { return a[i] == '*' },
		func(j int) bool { return b[j] == '*' },
		func(i, j int) bool { return a[i] == b[j] })
}

// onlyStars makes a component wider: a "?" or a class matches one character, which may be several bytes, or more once
// it is folded.
func onlyStars(c string) string {
	if !strings.ContainsAny(c, "?[") {
		return c
	}
	var b strings.Builder
	for i := 0; i < len(c); i++ {
		switch c[i] {
		case '[':
			i += len(class(c[i:])) - 1
			b.WriteByte('*')
		case '?':
			b.WriteByte('*')
		default:
			b.WriteByte(c[i])
		}
	}
	return b.String()
}

// intersect reports whether two sequences with stars, each of which stands for any number of elements, have an instance
// in common.
func intersect(n, m int, starA, starB func(int) bool, equal func(i, j int) bool) bool {
	below := make([]bool, m+1) // row i+1
	row := make([]bool, m+1)
	for i := n; i >= 0; i-- {
		for j := m; j >= 0; j-- {
			switch {
			case i == n && j == m:
				row[j] = true
			case i < n && starA(i):
				row[j] = below[j] || j < m && row[j+1]
			case j < m && starB(j):
				row[j] = row[j+1] || i < n && below[j]
			default:
				row[j] = i < n && j < m && equal(i, j) && below[j+1]
			}
		}
		row, below = below, row
	}
	return below[0]
}
