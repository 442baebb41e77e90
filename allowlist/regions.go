// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
)

// changed says what is wrong with a change of base to content, or nothing. It never asks whether a change lies in a
// region; it compares everything else byte for byte. Markers that a change brings along therefore cannot widen anything.
func (r regions) changed(base, content []byte) string {
	old, why := r.outside(base)
	if why != "" {
		return "the markers of the file as it is leave nothing to change: " + why
	}
	new, why := r.outside(content)
	if why != "" {
		return why
	}
	if !slices.EqualFunc(old, new, bytes.Equal) {
		return "a marker, or a byte outside the regions, changed"
	}
	return ""
}

// outside returns the pieces of text between the bodies of regions, marker lines included.
func (r regions) outside(text []byte) (pieces [][]byte, why string) {
	begin, end := r.token(r.begin), r.token(r.end)
	if begin == "" || end == "" {
		return nil, "a marker without a letter marks every line" // a policy cannot say this; the zero value can
	}
	var open *marker
	used := map[string]bool{}
	start := 0 // of the current piece
	for c := newCursor(text); !c.done(); {
		num, at := c.num, len(text)-len(c.rest)
		line := c.next()
		m, ok := r.parse(line)
		switch {
		case !ok:
			if key := foldKey(string(line)); strings.Contains(key, begin) || strings.Contains(key, end) {
				return nil, atLine(num) + " holds the text of a marker, but is not a marker line"
			}
		case m.begins && open == nil && (m.name == "" || !used[m.name]):
			used[m.name], open = true, &m
			pieces = append(pieces, text[start:len(text)-len(c.rest)])
		case !m.begins && open != nil && m.name == open.name:
			open, start = nil, at
		default:
			return nil, atLine(num) + " has a marker out of order, or a name that does not fit or is used twice"
		}
	}
	if open != nil || len(pieces) == 0 {
		return nil, "a region is not closed, or there is none"
	}
	return append(pieces, text[start:]), ""
}

// marker is one marker line.
type marker struct {
	begins bool
	name   string
}

// parse reads a marker line. A line that could be both kinds is none.
func (r regions) parse(line []byte) (marker, bool) {
	text := strings.TrimLeft(string(line), " \t")
	beginName, begins := markerName(text, r.begin)
	endName, ends := markerName(text, r.end)
	switch {
	case begins && !ends:
		return marker{true, beginName}, true
	case ends && !begins:
		return marker{false, endName}, true
	}
	return marker{}, false
}

// markerName takes the marker text, then the end of the line or a blank and a name.
func markerName(line, text string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(line, text)
	if !ok || rest == "" {
		return "", ok
	}
	if rest[0] != ' ' && rest[0] != '\t' || len(rest) == 1 {
		return "", false
	}
	for _, c := range []byte(rest[1:]) {
		if !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("_.-", c) >= 0) {
			return "", false
		}
	}
	return rest[1:], true
}

// token is the part of a marker that other tools may look for: without its comment sign, in any spelling.
func (regions) token(text string) string {
	return foldKey(strings.TrimLeftFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }))
}
