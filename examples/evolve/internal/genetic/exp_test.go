package genetic

import (
	"context"
	"flag"
	"github.com/evoseal/containment/examples/evolve/internal/binpack"
	"os"
	"testing"
	"time"
)

var prob = flag.String("prob", "uniform", "")
var maxv = flag.Int("max", 120, "")
var ps = flag.Int("ps", 200, "")
var scr = flag.Int("scr", 150, "")
var ren = flag.Int("ren", 50, "")
var seed = flag.Uint64("seed", 1, "")

func TestExp(t *testing.T) {
	p, _ := binpack.ParseProblem(*prob)
	f, ni, n := "or3", 40, 500
	if p == binpack.Weibull {
		f, ni, n = "weibull5k", 8, 5000
	}
	start := time.Now()
	r, err := os.Open("/work/shared/data/binpack/" + f + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	ins, _ := binpack.Read(r)
	real := NewScreen(ins)
	b := p.Generate(5000, ni, n)
	test := NewScreen(b)
	bf := Expr{{Op: Neg}, {Op: Gap}}
	s := New(Config{Seed: *seed, Problem: p, Screen: *scr, Population: *ps, Renew: *ren}, bf)
	best, be := binpack.ExcessOf(b, test.Bins(bf)), bf
	acc := 0
	for i := range *maxv {
		e, _ := s.Next(context.Background())
		bins := test.Bins(e)
		if bins == nil {
			t.Log("nil", e)
			continue
		}
		x := binpack.ExcessOf(b, bins)
		ok := x < best
		if ok {
			best, be = x, e
			acc++
		}
		s.Told(e, x)
		if ok {
			s.Kept(e)
		}
		if (i+1)%max(*maxv/8, 1) == 0 {
			t.Logf("%d: acc %d B %.3f real %.3f nodes %d", i+1, acc, best, binpack.ExcessOf(ins, real.Bins(be)), len(be))
		}
	}
	t.Log(time.Since(start), s.Screened())
	t.Log(be.Body())
}
