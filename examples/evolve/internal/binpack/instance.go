// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Instance is one sequence of items. Sizes and capacity are whole numbers of 1/Scale of the unit.
type Instance struct {
	Name     string
	Capacity int
	Scale    int // 1 unless the file had decimals
	Best     int // best known number of bins, as the file says; 0: not known
	Items    []int
}

// Bound is L1: the sum of the sizes over the capacity, rounded up. No packing has fewer bins.
func (in *Instance) Bound() int {
	sum := 0
	for _, item := range in.Items {
		sum += item
	}
	return (sum + in.Capacity - 1) / in.Capacity
}

// Problem is a distribution of items. The zero value is none.
type Problem uint8

// The two distributions that the FunSearch paper (Romera-Paredes et al., Nature 625, 2024) took for this experiment.
const (
	Uniform Problem = iota + 1 // 20 to 100, capacity 150: that of the OR-library's binpack1 to binpack4
	Weibull                    // shape 3, scale 45, clipped to 1…100, capacity 100
)

// ParseProblem reads a name.
func ParseProblem(name string) (Problem, error) {
	for _, p := range []Problem{Uniform, Weibull} {
		if name == p.String() {
			return p, nil
		}
	}
	return 0, fmt.Errorf("binpack: there is no problem %q; take uniform or weibull", name)
}

// String returns the name.
func (p Problem) String() string {
	switch p {
	case Uniform:
		return "uniform"
	case Weibull:
		return "weibull"
	}
	return "none"
}

// Capacity of a bin.
func (p Problem) Capacity() int {
	if p == Uniform {
		return 150
	}
	return 100
}

// Generate makes instances. The same arguments give the same instances, on every machine.
func (p Problem) Generate(seed uint64, instances, items int) []Instance {
	random := rand.New(rand.NewPCG(seed, uint64(p)))
	made := make([]Instance, instances)
	for i := range made {
		made[i] = Instance{
			Name:     fmt.Sprintf("%v_%d_%02d", p, seed, i),
			Capacity: p.Capacity(), Scale: 1, Items: make([]int, items),
		}
		for j := range made[i].Items {
			made[i].Items[j] = p.item(random)
		}
	}
	return made
}

func (p Problem) item(random *rand.Rand) int {
	if p == Uniform {
		return 20 + random.IntN(81)
	}
	// The inverse of the distribution function. 1-Float64() is never 0.
	size := 45 * math.Cbrt(-math.Log(1-random.Float64()))
	return min(max(int(math.Round(size)), 1), 100)
}
