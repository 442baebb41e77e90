// SPDX-License-Identifier: Apache-2.0

package allowlist

import "bytes"

// lineOp is either a run of equal lines, or lines that were removed and added in one place. Runs of the two sorts
// alternate, and the list begins with an equal run (maybe empty).
type lineOp struct {
	equal, removed, added [][]byte
}

func splitLines(content []byte) [][]byte {
	lines := bytes.SplitAfter(content, []byte("\n"))
	if n := len(lines); len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	return lines
}

// splitAllLines also ends a line at a carriage return that no line feed follows: compilers do, so a limit on lines that
// did not would let any amount of code pass for one line.
func splitAllLines(content []byte) [][]byte {
	var lines [][]byte
	for _, line := range splitLines(content) {
		for {
			i := bytes.IndexByte(line, '\r')
			if i < 0 || i+1 == len(line) || i+2 == len(line) && line[i+1] == '\n' {
				break
			}
			lines = append(lines, line[:i+1])
			line = line[i+1:]
		}
		lines = append(lines, line)
	}
	return lines
}

// diffLines compares two contents line by line, as patches see lines.
func diffLines(old, content []byte) []lineOp {
	return diffSplit(splitLines(old), splitLines(content))
}

// diffSplit compares two lists of lines.
func diffSplit(a, b [][]byte) []lineOp {
	head := 0
	for head < len(a) && head < len(b) && bytes.Equal(a[head], b[head]) {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && bytes.Equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	if head == len(a) && head == len(b) {
		return nil
	}
	out := opList{{equal: a[:head]}}
	out = out.middle(a[head:len(a)-tail], b[head:len(b)-tail])
	return out.equal(a[len(a)-tail:])
}

type opList []lineOp

// equal appends equal lines, and change others; both merge with what they follow.
func (l opList) equal(lines [][]byte) opList {
	if len(lines) == 0 {
		return l
	}
	if last := &l[len(l)-1]; last.removed == nil && last.added == nil {
		last.equal = append(last.equal[:len(last.equal):len(last.equal)], lines...)
		return l
	}
	return append(l, lineOp{equal: lines})
}

func (l opList) change(removed, added [][]byte) opList {
	if len(removed)+len(added) == 0 {
		return l
	}
	if last := &l[len(l)-1]; last.removed != nil || last.added != nil {
		last.removed = append(last.removed, removed...)
		last.added = append(last.added, added...)
		return l
	}
	return append(l, lineOp{removed: append([][]byte{}, removed...), added: append([][]byte{}, added...)})
}

// middle appends the difference of two blocks that have no common head or tail.
func (l opList) middle(a, b [][]byte) opList {
	i, j := 0, 0
	for _, m := range matchLines(a, b) {
		l = l.change(a[i:m.i], b[j:m.j])
		l = l.equal(a[m.i : m.i+1])
		i, j = m.i+1, m.j+1
	}
	return l.change(a[i:], b[j:])
}

// match pairs a line of the old content with its equal in the new one.
type match struct{ i, j int }

// matchLines finds a longest list of pairs in ascending order. Lines that only one side has cannot be in it and are set
// aside first, so that a file that is written anew costs no search.
func matchLines(a, b [][]byte) []match {
	x, y := ids(a, b)
	x, xAt := common(x, y)
	y, yAt := common(y, x)
	trace, ok := shortest(x, y)
	if !ok {
		return nil
	}
	pairs := replay(len(x), len(y), trace)
	for n, m := range pairs {
		pairs[n] = match{xAt[m.i], yAt[m.j]}
	}
	return pairs
}

// ids numbers the lines, so that the search compares numbers.
func ids(a, b [][]byte) (x, y []int32) {
	known := make(map[string]int32, len(a)+len(b))
	number := func(lines [][]byte) []int32 {
		out := make([]int32, len(lines))
		for i, line := range lines {
			id, ok := known[string(line)]
			if !ok {
				id = int32(len(known))
				known[string(line)] = id
			}
			out[i] = id
		}
		return out
	}
	return number(a), number(b)
}

// common returns the numbers of x that y has too, and where they stood.
func common(x, y []int32) (kept []int32, at []int) {
	has := make(map[int32]bool, len(y))
	for _, id := range y {
		has[id] = true
	}
	for i, id := range x {
		if has[id] {
			kept, at = append(kept, id), append(at, i)
		}
	}
	return kept, at
}
