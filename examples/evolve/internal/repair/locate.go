// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"bytes"
	"cmp"
	"encoding/json"
	"hash/maphash"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// places say where the mistake may be. All of it was printed by what is tested, so it decides about order alone.
type places struct {
	covered  []map[string][]span // for each failing test, by path on the surface: what it executed
	lines    map[string][]int    // that were named
	packages map[string]bool     // directories of packages that failed
	words    map[string]bool     // parts of the names of tests that failed
	stack    map[string]bool     // functions that a stack trace names, such as "(*T).Name"
}

type span struct{ from, to int }

var (
	namedLine   = regexp.MustCompile(`([\w@.+~/-]+\.go):(\d+)`)
	stackFrame  = regexp.MustCompile(`^[\w./-]+\.((?:\(\*?\w+\)\.)?\w+)\(.*\)$`)
	failedTest  = regexp.MustCompile(`--- FAIL: (\S+)`)
	failedUnit  = regexp.MustCompile(`^FAIL\s+(\S+)`)
	coveredSpan = regexp.MustCompile(`^(\S+\.go):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)$`)
)

// locate reads the output of the failed run and the profile.
func locate(output string, c Config, packages []*pkg) places {
	at := places{
		lines:    map[string][]int{},
		packages: map[string]bool{}, words: map[string]bool{}, stack: map[string]bool{},
	}
	for _, line := range plainLines(output, &at, packages) {
		if m := stackFrame.FindStringSubmatch(line); m != nil {
			at.stack[m[1]] = true
		}
		for _, m := range namedLine.FindAllStringSubmatch(line, -1) {
			if name := onSurface(m[1], packages); name != "" {
				n, _ := strconv.Atoi(m[2])
				at.lines[name] = append(at.lines[name], n)
			}
		}
		if m := failedTest.FindStringSubmatch(line); m != nil {
			at.test(m[1])
		}
		if m := failedUnit.FindStringSubmatch(line); m != nil {
			at.unit(m[1], packages)
		}
	}
	background := readProfile(c.Background, packages)
	for _, profile := range c.Coverage {
		covered := map[string][]span{}
		for at, count := range readProfile(profile, packages) {
			if count > background[at] {
				covered[at.path] = append(covered[at.path], at.span)
			}
		}
		if len(covered) > 0 {
			at.covered = append(at.covered, covered)
		}
	}
	return at
}

// block is a part of a file that is executed as a whole.
type block struct {
	path string
	span
	columns string
}

// readProfile returns how often each block was executed.
func readProfile(profile []byte, packages []*pkg) map[block]int {
	counts := map[block]int{}
	for line := range bytes.Lines(profile) {
		m := coveredSpan.FindSubmatch(bytes.TrimSpace(line))
		if m == nil {
			continue
		}
		if name := onSurface(string(m[1]), packages); name != "" {
			from, _ := strconv.Atoi(string(m[2]))
			to, _ := strconv.Atoi(string(m[4]))
			count, _ := strconv.Atoi(string(m[6]))
			counts[block{name, span{from, to}, string(m[3]) + "," + string(m[5])}] += count
		}
	}
	return counts
}

// plainLines takes the output out of the events of `go test -json`, and notes the tests and packages that failed.
func plainLines(output string, at *places, packages []*pkg) []string {
	var lines []string
	for line := range strings.Lines(output) {
		var event struct{ Action, Package, Test, Output string }
		if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &event) != nil {
			lines = append(lines, strings.TrimSpace(line))
			continue
		}
		switch event.Action {
		case "output":
			lines = append(lines, strings.TrimSpace(event.Output))
		case "fail":
			at.test(event.Test)
			at.unit(event.Package, packages)
		}
	}
	return lines
}

// unit notes a package that failed.
func (at *places) unit(importPath string, packages []*pkg) {
	// The path of the module is not known: the longest directory that the import path ends with is meant, or the top.
	best := ""
	for _, p := range packages {
		if strings.HasSuffix("/"+importPath, "/"+p.dir) && len(p.dir) > len(best) {
			best = p.dir
		}
	}
	at.packages[cmp.Or(best, ".")] = true
}

// test notes the words of a name: TestParseHeader/empty_line is about parse, header, empty and line.
func (at *places) test(name string) {
	for _, w := range words(strings.TrimPrefix(name, "Test")) {
		at.words[w] = true
	}
}

// words splits a name at capitals and at everything that is no letter.
func words(name string) []string {
	var found []string
	var word []rune
	flush := func() {
		if len(word) > 2 {
			found = append(found, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	for _, r := range name {
		if unicode.IsUpper(r) && len(word) > 0 && !unicode.IsUpper(word[len(word)-1]) || !unicode.IsLetter(r) {
			flush()
		}
		if unicode.IsLetter(r) {
			word = append(word, r)
		}
	}
	flush()
	return found
}

// onSurface returns the path of the surface that a name ends with, or "". The longest one is meant.
func onSurface(name string, packages []*pkg) string {
	name = "/" + path.Clean(name)
	best := ""
	for _, p := range packages {
		for _, f := range p.files {
			if strings.HasSuffix(name, "/"+f.path) && len(f.path) > len(best) {
				best = f.path
			}
		}
	}
	return best
}

// nearby is how many lines around one that was named are meant with it.
const nearby = 3

// order sorts the changes: by what the place costs together with what the operator costs, then by place. What would give
// the same file twice is left out.
func order(changes []change, at places) []change {
	costs := make(map[*change]int, len(changes))
	ranked := make([]*change, len(changes))
	for i := range changes {
		c := &changes[i]
		ranked[i], costs[c] = c, c.cost+at.cost(c)
	}
	slices.SortStableFunc(ranked, func(a, b *change) int {
		return cmp.Or(cmp.Compare(costs[a], costs[b]), cmp.Compare(a.file.path, b.file.path), cmp.Compare(a.start, b.start))
	})
	seen := map[uint64]bool{}
	var sorted []change
	var h maphash.Hash
	for _, c := range ranked {
		if sum := c.sum(&h); !seen[sum] {
			seen[sum] = true
			sorted = append(sorted, *c)
		}
	}
	return sorted
}

// sum tells results apart, with a copy of none of them.
func (c *change) sum(h *maphash.Hash) uint64 {
	h.Reset()
	h.WriteString(c.file.path)
	h.WriteByte(0)
	h.Write(c.file.src[:c.start])
	h.WriteString(c.text)
	h.Write(c.file.src[c.end:])
	return h.Sum64()
}

// cost says how unlikely a place is.
func (at *places) cost(c *change) int {
	cost := 0
	covers := func(s span) bool { return s.from <= c.line && c.line <= s.to }
	missed := 0 // what a test did not execute is not what it failed for, unless it is a declaration
	for _, covered := range at.covered {
		if !slices.ContainsFunc(covered[c.file.path], covers) {
			missed++
		}
	}
	if missed > 0 {
		cost += 3 * last * missed / len(at.covered)
	}
	if len(at.packages) > 0 && !at.packages[path.Dir(c.file.path)] {
		cost += last
	}
	if len(at.lines[c.file.path]) > 0 && slices.ContainsFunc(at.lines[c.file.path], func(n int) bool {
		return c.line-nearby <= n && n <= c.line+nearby
	}) {
		cost -= last
	}
	if at.stack[c.function] {
		cost -= common
	}
	return cost - 2*at.affinity(c)
}

// affinity counts the words that the names of the function and of the failing tests have in common, at most 2.
func (at *places) affinity(c *change) int {
	n := 0
	for _, w := range words(c.function) {
		if at.words[w] {
			n++
		}
	}
	return min(n, 2)
}
