// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
)

// spectrum says which tests execute a place: spectrum-based fault localisation with the coefficient of Ochiai, which was
// the best of those that Abreu, Zoeteweij and van Gemund compared ("On the Accuracy of Spectrum-based Fault Localization",
// 2007).
type spectrum struct {
	files map[string][]suspect // by path on the surface
	top   float64              // the largest coefficient; 0: nothing is known
}

// suspect is a part of a file that is executed as a whole.
type suspect struct {
	block
	ochiai float64
}

type block struct{ fromLine, fromColumn, toLine, toColumn int }

// has reports whether a position is inside.
func (b block) has(line, column int) bool {
	after := line > b.fromLine || line == b.fromLine && column >= b.fromColumn
	before := line < b.toLine || line == b.toLine && column <= b.toColumn
	return after && before
}

// newSpectrum counts for each block the failing and the passing tests that execute it.
func newSpectrum(c Config, packages []*pkg) spectrum {
	type at struct {
		path string
		block
	}
	type count struct{ failing, passing int }
	background := map[at]int{}
	readProfile(c.Background, packages, func(path string, b block, n int) { background[at{path, b}] = n })
	counts := map[at]*count{}
	tally := func(profile []byte, into func(*count)) (any bool) {
		readProfile(profile, packages, func(path string, b block, n int) {
			key := at{path, b}
			if n <= background[key] {
				return
			}
			if counts[key] == nil {
				counts[key] = new(count)
			}
			into(counts[key])
			any = true
		})
		return any
	}
	failed := 0
	for _, profile := range c.Failing {
		if tally(profile, func(n *count) { n.failing++ }) {
			failed++ // a test that leaves no profile, because it panics, says nothing
		}
	}
	for _, profile := range c.Passing {
		tally(profile, func(n *count) { n.passing++ })
	}
	s := spectrum{files: map[string][]suspect{}}
	for key, n := range counts {
		if n.failing == 0 {
			continue
		}
		ochiai := float64(n.failing) / math.Sqrt(float64(failed)*float64(n.failing+n.passing))
		s.files[key.path] = append(s.files[key.path], suspect{key.block, ochiai})
		s.top = max(s.top, ochiai)
	}
	return s
}

// suspicion is from 0, for what no failing test executes, to 1. Where nothing is known all places are alike.
func (s spectrum) suspicion(c *change) (most float64) {
	if s.top == 0 {
		return 1
	}
	for _, b := range s.files[c.file.path] {
		if b.has(c.line, c.col) {
			most = max(most, b.ochiai/s.top)
		}
	}
	return most
}

var profileLine = regexp.MustCompile(`^(\S+\.go):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)$`)

// readProfile tells how often each block of the surface was executed. The profile was written by what is tested, so what
// is no such line is passed over. A block that several packages' tests have counted comes once for each.
func readProfile(profile []byte, packages []*pkg, found func(path string, b block, n int)) {
	for line := range bytes.Lines(profile) {
		m := profileLine.FindSubmatch(bytes.TrimSpace(line))
		if m == nil {
			continue
		}
		if name := onSurface(string(m[1]), packages); name != "" {
			var n [5]int
			for i := range n {
				n[i], _ = strconv.Atoi(string(m[i+2]))
			}
			found(name, block{n[0], n[1], n[2], n[3]}, n[4])
		}
	}
}
