// SPDX-License-Identifier: Apache-2.0

// Package program is what is evolved: it packs the items of instances.txt, in the order in which they stand there, by
// the scores of package priority, and leaves the packings behind. It imports little, since it is linked anew for each
// variant.
package program

import (
	"encoding/binary"
	"flag"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/evoseal/containment/examples/evolve/program/priority"
)

var packing = flag.String("packing", "", "`file` for the packings: 32 bits for each item, the bin that it is in")

// TestScore asks for a number, and the same one again, wherever the packing may need one.
func TestScore(t *testing.T) {
	for _, in := range instances(t) {
		seen := map[int]bool{}
		for _, item := range in.items {
			if seen[item] {
				continue
			}
			seen[item] = true
			for gap := 0; gap <= in.capacity-item; gap++ {
				a, b := in.score(item, gap), in.score(item, gap)
				if a != b || math.IsNaN(a) || math.IsInf(a, 0) {
					t.Fatalf("%s: item %d, gap %d: the scores are %v and %v", in.name, item, gap, a, b)
				}
			}
		}
	}
}

// TestPack packs everything, and fails if an item gets lost on the way.
func TestPack(t *testing.T) {
	var out []byte
	for _, in := range instances(t) {
		for _, bin := range in.pack() {
			out = binary.LittleEndian.AppendUint32(out, uint32(bin))
		}
	}
	if *packing != "" {
		if err := os.WriteFile(*packing, out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// instance has sizes and a capacity in 1/scale of the unit that the scores are in.
type instance struct {
	name            string
	capacity, scale int
	items           []int
	scores          map[int][]float64 // of an item, by gap
}

func (in *instance) score(item, gap int) float64 {
	scale := float64(in.scale)
	return priority.Score(float64(item)/scale, float64(gap)/scale, float64(in.capacity)/scale)
}

// pack puts each item into the open bin with the highest score, or into a new one if that scores higher. Bins with the
// same room are alike; of different ones with the same score the fuller one wins.
func (in *instance) pack() []int {
	bins := make([]int, len(in.items))
	open := make([][]int, in.capacity+1) // bins by their room
	count := 0
	for i, item := range in.items {
		row := in.row(item)
		room := in.capacity
		for r := in.capacity - 1; r >= item; r-- {
			if len(open[r]) > 0 && row[r-item] >= row[room-item] {
				room = r
			}
		}
		if room == in.capacity {
			bins[i] = count
			count++
		} else {
			last := len(open[room]) - 1
			bins[i] = open[room][last]
			open[room] = open[room][:last]
		}
		open[room-item] = append(open[room-item], bins[i])
	}
	return bins
}

func (in *instance) row(item int) []float64 {
	row, ok := in.scores[item]
	if !ok {
		for gap := 0; gap <= in.capacity-item; gap++ {
			row = append(row, in.score(item, gap))
		}
		in.scores[item] = row
	}
	return row
}

// instances reads instances.txt: the number of instances, and for each of them name, capacity, number of items, scale,
// and the items.
func instances(t *testing.T) []instance {
	t.Helper()
	data, err := os.ReadFile("instances.txt")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data))
	next := func() string {
		if len(fields) == 0 {
			t.Fatal("instances.txt ends too early")
		}
		field := fields[0]
		fields = fields[1:]
		return field
	}
	number := func() int {
		n, err := strconv.Atoi(next())
		if err != nil || n < 0 {
			t.Fatal("instances.txt: ", err)
		}
		return n
	}
	all := make([]instance, number())
	for i := range all {
		all[i] = instance{name: next(), capacity: number(), scores: map[int][]float64{}}
		all[i].items = make([]int, number())
		all[i].scale = max(number(), 1)
		for j := range all[i].items {
			all[i].items[j] = number()
		}
	}
	return all
}
