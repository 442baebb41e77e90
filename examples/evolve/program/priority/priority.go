// SPDX-License-Identifier: Apache-2.0

// Package priority is the part of the program that is rewritten: the body of Score, and nothing else.
package priority

import "math"

// Score says how good it would be to put the item into a bin: the bin with the highest score gets it. Gap is what
// would stay free in that bin. An empty bin is always among the candidates. This is best fit, where the run begins.
func Score(item, gap, capacity float64) float64 {
	return -gap
}

// Div is division without a pole.
func div(a, b float64) float64 {
	if math.Abs(b) < 1e-6 {
		return 1
	}
	return a / b
}

// Root is the square root of the distance from zero.
func root(a float64) float64 { return math.Sqrt(math.Abs(a)) }

// Pick is the choice between two numbers.
func pick(c bool, a, b float64) float64 {
	if c {
		return a
	}
	return b
}

// A body may use any of these, or none.
var _, _, _ = div, root, pick
