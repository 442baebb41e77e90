// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
)

// Config is what a Generator knows beside the State. The zero value is usable.
type Config struct {
	// Coverage holds profiles as `go test -coverprofile` writes them, one for each test that fails. What all of them cover
	// is tried first, and what none covers last. Empty: the output of the failed run alone says what is likely.
	Coverage [][]byte
	// Background is a profile of a run without any test. What it counts is taken off the others: the preparations of a test
	// program are no sign. All profiles are then of the mode count.
	Background []byte
}

// Generator proposes one change after the other. It is not safe for use by several goroutines.
type Generator struct {
	config Config

	// What was made of the last surface: only a cache, since it follows from the state.
	key  allowlist.Digest
	list *list
}

// New makes a Generator.
func New(c Config) *Generator { return &Generator{config: c} }

// Cover sets the profiles of the Config, for a caller that has them later. What was proposed before keeps its place in the
// history.
func (g *Generator) Cover(profiles [][]byte, background []byte) {
	g.config.Coverage, g.config.Background, g.list = profiles, background, nil
}

var _ variant.Generator = (*Generator)(nil)

// Next proposes the change after the last one of the history. When there is none left the error is
// variant.ErrExhausted. A surface without a Go file that can be parsed has none from the start.
func (g *Generator) Next(ctx context.Context, s *variant.State) (variant.Proposal, error) {
	if key := surfaceKey(s); g.list == nil || key != g.key {
		g.key, g.list = key, newList(s, g.config)
	}
	for i := g.list.after(s.History); i < len(g.list.changes); i++ {
		if err := ctx.Err(); err != nil {
			return variant.Proposal{}, err
		}
		c := g.list.changes[i]
		if !g.list.compiles(c) {
			continue
		}
		edit, err := s.Replace(c.file.path, c.apply())
		if err != nil {
			return variant.Proposal{}, err
		}
		return variant.Proposal{Edits: []allowlist.Edit{edit}, Note: c.note}, nil
	}
	return variant.Proposal{}, variant.ErrExhausted
}

// surfaceKey identifies what a list is made from.
func surfaceKey(s *variant.State) allowlist.Digest {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%q\n", s.Baseline)
	for _, f := range s.Surface {
		fmt.Fprintf(&b, "%q %q %q\n", f.Path, f.Bodies, f.Content)
	}
	return allowlist.Sum(b.Bytes())
}

// list is every change of one tree, in the order in which they are tried.
type list struct {
	changes  []change
	position map[string]int // of a change by its note
	packages []*pkg
}

// newList parses the surface and collects the changes.
func newList(s *variant.State, c Config) *list {
	l := &list{packages: load(s)}
	for _, p := range l.packages {
		for _, f := range p.files {
			l.changes = append(l.changes, collect(p, f)...)
		}
	}
	where := locate(s.Baseline, c, l.packages)
	l.changes = order(l.changes, where)
	l.position = make(map[string]int, len(l.changes))
	for i := range l.changes {
		// The position is found again by the note, so no two may have the same: long texts are cut short in it.
		note := l.changes[i].describe()
		for n := 2; ; n++ {
			if _, taken := l.position[note]; !taken {
				break
			}
			note = fmt.Sprintf("%s (%d)", l.changes[i].describe(), n)
		}
		l.changes[i].note, l.position[note] = note, i
	}
	return l
}

// after returns the position behind the newest change of the history that is in the list. A history that ends with an
// accepted variant says nothing about this tree, so the list begins anew.
func (l *list) after(history []variant.Past) int {
	for i := len(history) - 1; i >= 0 && !history[i].Accepted; i-- {
		if n, ok := l.position[history[i].Note]; ok {
			return n + 1
		}
	}
	return 0
}

// compiles reports whether the type checker has no more to say about the changed package than about the one it was made
// from.
func (l *list) compiles(c change) bool {
	for _, p := range l.packages {
		for _, f := range p.files {
			if f == c.file {
				return p.accepts(f, c.apply())
			}
		}
	}
	return false
}

// change is one mutation: bytes of a file that are replaced by others.
type change struct {
	file       *file
	start, end int
	text       string
	line, col  int
	function   string // that it is in, such as "(*T).Name"; "" outside
	kind       string // of the operator, such as "comparison"
	cost       int    // of the operator: likely mistakes are cheap
	note       string // on one line, and unique in a list
}

// apply returns the changed file.
func (c change) apply() []byte {
	src := c.file.src
	out := make([]byte, 0, len(src)+len(c.text))
	return append(append(append(out, src[:c.start]...), c.text...), src[c.end:]...)
}

// describe names the change on one line.
func (c change) describe() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s → %s", c.file.path, c.line, c.col, c.kind,
		short(string(c.file.src[c.start:c.end])), short(c.text))
}

// short makes one line of at most 60 characters of source text.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 60 {
		s = string(r[:40]) + " … " + string(r[len(r)-17:])
	}
	if s == "" {
		return "nothing"
	}
	return s
}
