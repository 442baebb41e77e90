// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader takes values out of YAML nodes. The library's own decoding would lose lines and let unknown keys pass, so every
// key and type is checked here.
type reader struct {
	ps    *problems
	lines [][]rune // the text, for what the nodes do not show
}

func newReader(data []byte, ps *problems) *reader {
	r := &reader{ps: ps}
	for line := range bytes.Lines(data) {
		r.lines = append(r.lines, []rune(string(line)))
	}
	return r
}

// tagged reports whether the node starts with a tag. The library forgets the tag "!", so the text is asked: a plain
// value cannot start with an exclamation mark.
func (r *reader) tagged(n *yaml.Node) bool {
	if n.Style&yaml.TaggedStyle != 0 {
		return true
	}
	line, column := n.Line-1, n.Column-1
	return line >= 0 && line < len(r.lines) && column >= 0 && column < len(r.lines[line]) && r.lines[line][column] == '!'
}

// place is the origin of a node.
func place(at origin, n *yaml.Node) origin {
	at.line = n.Line
	return at
}

// plain refuses the features of YAML that make a text say something else than what a reader sees.
func (r *reader) plain(n *yaml.Node, at origin) bool {
	at = place(at, n)
	switch {
	case n.Kind == yaml.AliasNode:
		r.ps.at(at, "an alias (*"+n.Value+")", "write the value out")
	case n.Anchor != "":
		r.ps.at(at, "an anchor (&"+n.Anchor+")", "remove it, and write each value out")
	case r.tagged(n):
		r.ps.at(at, "an explicit tag", "remove the tag")
	default:
		return true
	}
	return false
}

// fields returns the values of a mapping by key.
func (r *reader) fields(n *yaml.Node, at origin, known ...string) map[string]*yaml.Node {
	if !r.plain(n, at) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.ps.at(place(at, n), "not a mapping", "write keys and values: "+strings.Join(known, ", "))
		return nil
	}
	values := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !r.plain(key, at) {
			continue
		}
		switch _, twice := values[key.Value]; {
		case key.Tag == "!!merge":
			r.ps.at(place(at, key), "a merge key (<<)", "write the keys out")
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, key.Value):
			r.ps.at(place(at, key), fmt.Sprintf("unknown key %q", key.Value), "the keys here are "+strings.Join(known, ", "))
		case twice:
			r.ps.at(place(at, key), fmt.Sprintf("duplicate key %q", key.Value), "keep one of them")
		default:
			values[key.Value] = value
		}
	}
	return values
}

// list returns the elements of a sequence.
func (r *reader) list(n *yaml.Node, at origin) []*yaml.Node {
	if n == nil || !r.plain(n, at) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.ps.at(place(at, n), "not a list", "write [] for an empty one")
		return nil
	}
	return n.Content
}

// str returns a string. A missing one is empty, and stands where its owner does; one that was refused is marked bad.
func (r *reader) str(n *yaml.Node, at origin) text {
	if n == nil {
		return text{at: at}
	}
	at = place(at, n)
	switch {
	case !r.plain(n, at):
	case n.Kind != yaml.ScalarNode || n.Tag != "!!str":
		r.ps.at(at, "not a string", "write a string, in quotes if it looks like something else")
	case n.Value == "":
		r.ps.at(at, "an empty string", "write a value, or remove the entry")
	default:
		return text{s: n.Value, at: at}
	}
	return text{at: at, bad: true}
}

// strs returns the strings of a list, without the bad ones.
func (r *reader) strs(n *yaml.Node, at origin) []text {
	var out []text
	for i, element := range r.list(n, at) {
		if t := r.str(element, at.in("[%d]", i)); !t.bad {
			out = append(out, t)
		}
	}
	return out
}
