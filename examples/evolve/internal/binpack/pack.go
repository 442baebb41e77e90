// SPDX-License-Identifier: Apache-2.0

package binpack

// Rule packs an instance: the answer has the bin of each item, counted from 0.
type Rule func(in *Instance) []int

// FirstFit puts an item into the first bin with enough room.
func FirstFit(in *Instance) []int {
	return packOpen(in, func(room []int, item int) int {
		for i, r := range room {
			if r >= item {
				return i
			}
		}
		return len(room)
	})
}

// BestFit puts an item into the bin that it fills most; of equals, into the first.
func BestFit(in *Instance) []int {
	return packOpen(in, func(room []int, item int) int {
		best := len(room)
		for i, r := range room {
			if r >= item && (best == len(room) || r < room[best]) {
				best = i
			}
		}
		return best
	})
}

// packOpen asks for each item which of the open bins it goes to; len(room) is a new one.
func packOpen(in *Instance, choose func(room []int, item int) int) []int {
	packing := make([]int, len(in.Items))
	var room []int
	for i, item := range in.Items {
		bin := choose(room, item)
		if bin == len(room) {
			room = append(room, in.Capacity)
		}
		room[bin] -= item
		packing[i] = bin
	}
	return packing
}

// Bins is the number of different bins in a packing that Check has passed.
func Bins(packing []int) int {
	most := -1
	for _, bin := range packing {
		most = max(most, bin)
	}
	return most + 1
}

// Excess is by how much a rule needs more bins than the lower bound, over all instances together, in per cent.
func Excess(instances []Instance, rule Rule) float64 {
	bins := make([]int, len(instances))
	for i := range instances {
		bins[i] = Bins(rule(&instances[i]))
	}
	return ExcessOf(instances, bins)
}

// ExcessOf is Excess for numbers of bins that are known.
func ExcessOf(instances []Instance, bins []int) float64 {
	used, bound := 0, 0
	for i := range instances {
		used += bins[i]
		bound += instances[i].Bound()
	}
	return 100 * float64(used-bound) / float64(bound)
}
