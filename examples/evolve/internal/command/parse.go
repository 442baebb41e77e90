// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
	"github.com/evoseal/containment/runaway"
)

// answer is the JSON form. Unknown names are refused: what a program believes to say should not be lost.
type answer struct {
	Edits []struct {
		Op      string `json:"op"`
		Path    string `json:"path"`
		Content string `json:"content"`
	} `json:"edits"`
	Note      string        `json:"note"`
	Usage     runaway.Usage `json:"usage"`
	Exhausted bool          `json:"exhausted"`
}

var ops = map[string]allowlist.Op{"create": allowlist.Create, "modify": allowlist.Modify, "delete": allowlist.Delete}

// parse tells the forms apart and reads one.
func parse(output []byte, s *variant.State) (p variant.Proposal, err error) {
	switch trimmed := bytes.TrimSpace(output); {
	case len(trimmed) == 0:
		return p, fmt.Errorf("%w: it printed nothing; the end of the search is {\"exhausted\": true}", ErrAnswer)
	case trimmed[0] == '{':
		return parseJSON(trimmed, s)
	case bytes.HasPrefix(output, []byte("diff --git ")):
		p.Edits, err = allowlist.ParsePatch(output, s)
	case bytes.HasPrefix(output, []byte("*** Begin Patch\n")):
		p.Edits, err = allowlist.ParseApplyPatch(output, s)
	default:
		p.Edits, err = allowlist.ParseSearchReplace(output, s)
	}
	if err != nil {
		return variant.Proposal{}, fmt.Errorf("command: the edits do not fit the surface: %w", err)
	}
	return p, nil
}

func parseJSON(output []byte, s *variant.State) (p variant.Proposal, err error) {
	var a answer
	decoder := json.NewDecoder(bytes.NewReader(output))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		return p, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return p, fmt.Errorf("%w: something follows the object", ErrAnswer)
	}
	if u := a.Usage; u.Tokens < 0 || u.Cost < 0 || u.Calls < 0 || u.CPU < 0 {
		return p, fmt.Errorf("%w: usage is negative", ErrAnswer)
	}
	// What was spent was spent, whatever the rest is like. The note is text of the program.
	p.Usage, p.Note = a.Usage, oneLine(a.Note)
	switch {
	case a.Exhausted && len(a.Edits) > 0:
		return p, fmt.Errorf("%w: exhausted, and yet there are edits", ErrAnswer)
	case a.Exhausted:
		return p, variant.ErrExhausted
	case len(a.Edits) == 0:
		return p, fmt.Errorf("%w: there is no edit", ErrAnswer)
	}
	for _, e := range a.Edits {
		edit := allowlist.Edit{Op: ops[e.Op], Path: e.Path}
		switch edit.Op {
		case 0:
			return p, fmt.Errorf("%w: op %q; it is create, modify or delete", ErrAnswer, e.Op)
		case allowlist.Create, allowlist.Modify:
			edit.Content = []byte(e.Content)
		}
		if edit.Op != allowlist.Create {
			old, err := s.ReadFile(e.Path)
			if err != nil {
				return p, fmt.Errorf("%w: %w", ErrAnswer, err)
			}
			edit.Base = allowlist.Sum(old)
		}
		p.Edits = append(p.Edits, edit)
	}
	return p, nil
}

// oneLine takes out what would move the cursor of a terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200])
	}
	return s
}
