// SPDX-License-Identifier: Apache-2.0

package allowlist

import "slices"

// maxEdits bounds the search for the shortest difference; memory and time grow with its square. Beyond it a block
// counts as replaced, so the number of changed lines is never reported too low.
const maxEdits = 1000

// shortest walks the edit graph of two sequences by rising number of edits d (Myers' greedy method). trace[d] keeps how
// far each diagonal -d-1..d+1 had come before round d, at index k+d+1.
func shortest(x, y []int32) (trace [][]int32, ok bool) {
	limit := min(len(x)+len(y), maxEdits)
	far := make([]int32, 2*limit+3)
	mid := limit + 1
	for d := 0; d <= limit; d++ {
		trace = append(trace, slices.Clone(far[mid-d-1:mid+d+2]))
		for k := -d; k <= d; k += 2 {
			i := furthest(far[mid+k-1], far[mid+k+1], k, d)
			for i < len(x) && i-k < len(y) && x[i] == y[i-k] {
				i++
			}
			far[mid+k] = int32(i)
			if i >= len(x) && i-k >= len(y) {
				return trace, true
			}
		}
	}
	return nil, false
}

// furthest is where round d starts on diagonal k, from the better of its neighbours.
func furthest(below, above int32, k, d int) int {
	switch {
	case d == 0:
		return 0
	case fromAbove(below, above, k, d):
		return int(above)
	}
	return int(below) + 1
}

// fromAbove tells whether the step to diagonal k is an insertion, from k+1.
func fromAbove(below, above int32, k, d int) bool { return k == -d || (k != d && below < above) }

// replay goes back over the trace and collects the equal pairs.
func replay(i, j int, trace [][]int32) []match {
	var pairs []match
	for d := len(trace) - 1; d > 0; d-- {
		before, k := trace[d], i-j
		below, above := before[k+d], before[k+d+2]
		start := furthest(below, above, k, d)
		for ; i > start; i, j = i-1, j-1 {
			pairs = append(pairs, match{i - 1, j - 1})
		}
		if fromAbove(below, above, k, d) {
			j--
		} else {
			i--
		}
	}
	for ; i > 0 && j > 0; i, j = i-1, j-1 {
		pairs = append(pairs, match{i - 1, j - 1})
	}
	slices.Reverse(pairs)
	return pairs
}
