// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"fmt"
)

// update applies the hunks in order. It works on the file between two newlines: one before the first line, and one after
// the last even where the file has none there. So whole lines, and only whole lines, are found by a plain search for
// "\nline\n".
func (s *beginSection) update(base []byte, budget *searchBudget) ([]byte, error) {
	lacksNewline := len(base) == 0 || base[len(base)-1] != '\n'
	hay := make([]byte, 0, len(base)+2)
	hay = append(append(hay, '\n'), base...)
	if lacksNewline && len(base) > 0 {
		hay = append(hay, '\n')
	}
	out := make([]byte, 0, len(hay))
	copied, point := 0, 0 // point is at the newline that ends the last line that is behind us
	for _, h := range s.hunks {
		if err := budget.spend(len(hay)-point, atLine(h.line)); err != nil {
			return nil, err
		}
		start, err := h.find(hay, point)
		if err != nil {
			return nil, err
		}
		out = append(out, hay[copied:start+1]...)
		out = append(out, h.new...)
		copied = start + 1 + len(h.old)
		point = copied - 1
	}
	out = append(out, hay[copied:]...)[1:]
	if lacksNewline {
		out = bytes.TrimSuffix(out, []byte{'\n'})
	}
	return out, nil
}

// find returns the place of the newline before the old lines of the hunk.
func (h beginHunk) find(hay []byte, point int) (int, error) {
	at := atLine(h.line)
	if h.hasAnchor {
		i, err := findOnce(hay[point:], []byte("\n"+h.anchor+"\n"), "the anchor line", at)
		if err != nil {
			return 0, err
		}
		point += i + 1 + len(h.anchor)
	}
	if len(h.old) == 0 {
		return h.findPlace(hay, point)
	}
	needle := append([]byte{'\n'}, h.old...)
	i, err := findOnce(hay[point:], needle, "the run of old lines", at)
	if err != nil {
		return 0, err
	}
	if h.atEnd && point+i+len(needle) != len(hay) {
		return 0, &parseRefusal{ErrConflict, at, "the hunk must end at the end of the file, and lines follow it"}
	}
	return point + i, nil
}

// findPlace finds where a hunk that only adds lines belongs: at the end if it says so. Otherwise there must be one place
// only, as at an anchor on the last line.
func (h beginHunk) findPlace(hay []byte, point int) (int, error) {
	last := len(hay) - 1
	if h.atEnd || point == last {
		return last, nil
	}
	places := bytes.Count(hay[point:], []byte{'\n'})
	return 0, &parseRefusal{ErrConflict, atLine(h.line),
		fmt.Sprintf("the hunk has no old lines, and fits in %d places; it must fit exactly one", places)}
}
