// SPDX-License-Identifier: Apache-2.0

package binpack_test

import (
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/examples/evolve/internal/binpack"
)

// data is a directory with or3.txt and weibull5k.txt, the instances that the literature measures by. They are not part
// of this repository; without them TestGenerated alone says that rules and distributions are right.
var data = flag.String("binpack.data", "", "`directory` with or3.txt and weibull5k.txt")

func TestKnownValues(t *testing.T) {
	t.Parallel()
	known := map[string][2]float64{"or3.txt": {5.74, 5.37}, "weibull5k.txt": {4.23, 3.98}}
	if *data == "" {
		known = nil
	}
	for name, want := range known {
		f, err := os.Open(filepath.Join(*data, name))
		if err != nil {
			t.Fatal(err)
		}
		instances, err := binpack.Read(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		got := [2]float64{binpack.Excess(instances, binpack.FirstFit), binpack.Excess(instances, binpack.BestFit)}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 0.005 })); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Generated instances are like the real ones: the classical rules need as many bins too many, within the spread.
func TestGenerated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		problem          binpack.Problem
		instances, items int
		first, best      float64
	}{{binpack.Uniform, 40, 500, 5.7, 5.3}, {binpack.Weibull, 5, 5000, 4.4, 4.1}} {
		instances := c.problem.Generate(7, c.instances, c.items)
		if first := binpack.Excess(instances, binpack.FirstFit); math.Abs(first-c.first) > 0.5 {
			t.Errorf("%v: first fit %.2f", c.problem, first)
		}
		if best := binpack.Excess(instances, binpack.BestFit); math.Abs(best-c.best) > 0.5 {
			t.Errorf("%v: best fit %.2f", c.problem, best)
		}
		if diff := cmp.Diff(instances, c.problem.Generate(7, c.instances, c.items)); diff != "" {
			t.Error("the same seed gave others:", diff)
		}
		if cmp.Equal(instances[0].Items, c.problem.Generate(8, 1, c.items)[0].Items) {
			t.Error("another seed gave the same")
		}
		for _, in := range instances {
			for _, item := range in.Items {
				if item < 1 || item > in.Capacity {
					t.Fatalf("%s: item %d", in.Name, item)
				}
			}
		}
	}
}

func TestParseProblem(t *testing.T) {
	t.Parallel()
	for _, p := range []binpack.Problem{binpack.Uniform, binpack.Weibull} {
		if got, err := binpack.ParseProblem(p.String()); got != p || err != nil {
			t.Error(got, err)
		}
	}
	for _, name := range []string{"", "none", "Uniform", "triplets"} {
		if got, err := binpack.ParseProblem(name); got != 0 || err == nil {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	in := &binpack.Instance{Capacity: 10, Scale: 1, Items: []int{6, 7, 3, 4, 8, 2}}
	if diff := cmp.Diff([]int{0, 1, 0, 2, 3, 1}, binpack.FirstFit(in)); diff != "" {
		t.Error("first fit:", diff)
	}
	if diff := cmp.Diff([]int{0, 1, 1, 0, 2, 2}, binpack.BestFit(in)); diff != "" {
		t.Error("best fit:", diff)
	}
	if in.Bound() != 3 || binpack.Bins([]int{0, 1, 1, 0, 2, 2}) != 3 || binpack.Bins(nil) != 0 {
		t.Error("bound or bins")
	}
	if excess := binpack.ExcessOf([]binpack.Instance{*in, *in}, []int{3, 4}); math.Abs(excess-100.0/6) > 1e-9 {
		t.Error("excess:", excess)
	}
}

func encode(bins ...uint32) (data []byte) {
	for _, bin := range bins {
		data = binary.LittleEndian.AppendUint32(data, bin)
	}
	return data
}

func TestCheck(t *testing.T) {
	t.Parallel()
	instances := []binpack.Instance{
		{Name: "a", Capacity: 10, Items: []int{6, 7, 3, 4}}, {Name: "b", Capacity: 5, Items: []int{5, 5}},
	}
	for _, c := range []struct {
		name string
		data []byte
		want []int
	}{
		{"good", encode(0, 1, 1, 0, 0, 1), []int{2, 2}},
		{"wasteful", encode(0, 1, 2, 3, 0, 1), []int{4, 2}},
		{"nothing", nil, nil},
		{"one short", encode(0, 1, 1, 0, 0), nil},
		{"one more", encode(0, 1, 1, 0, 0, 1, 1), nil},
		{"a byte more", append(encode(0, 1, 1, 0, 0, 1), 0), nil},
		{"too full", encode(0, 0, 1, 1, 0, 1), nil},
		{"bin of the instance before", encode(0, 1, 1, 0, 1, 1), nil},
		{"a gap in the numbers", encode(0, 2, 1, 0, 0, 1), nil},
		{"the largest number", encode(math.MaxUint32, 1, 1, 0, 0, 1), nil},
		{"as a negative", encode(0, 1<<31, 1, 0, 0, 1), nil},
	} {
		got, err := binpack.Check(instances, c.data)
		if diff := cmp.Diff(c.want, got); diff != "" || (err == nil) != (c.want != nil) || err != nil && !errors.Is(err, binpack.ErrPacking) {
			t.Errorf("%s: %v %s", c.name, err, diff)
		}
	}
}

// What the classical rules answer passes Check with the same count.
func TestCheckRules(t *testing.T) {
	t.Parallel()
	instances := binpack.Uniform.Generate(3, 5, 200)
	for _, rule := range []binpack.Rule{binpack.FirstFit, binpack.BestFit} {
		var data []byte
		var want []int
		for i := range instances {
			packing := rule(&instances[i])
			want = append(want, binpack.Bins(packing))
			for _, bin := range packing {
				data = append(data, encode(uint32(bin))...)
			}
		}
		got, err := binpack.Check(instances, data)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(err, diff)
		}
	}
}
