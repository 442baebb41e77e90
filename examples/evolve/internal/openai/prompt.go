// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/evoseal/containment/examples/evolve/internal/variant"
)

const rules = `You improve a program by small edits. Another program applies them, runs tests in a sandbox, and measures.
Answer with one or more search/replace blocks and nothing else. Each block has this form:

path/to/file
<<<<<<< SEARCH
lines that are in the file, exactly as they are, whole lines
=======
the lines that take their place
>>>>>>> REPLACE

The lines to search for must occur exactly once in the file. Change only the files that you are shown, and in them only
what the task says; edits of any other file, of tests and of anything that builds or judges the program are refused.
Try something that has not been tried.
`

// prompt is what a model gets to see of the state.
func prompt(s *variant.State) []message {
	var b strings.Builder
	fmt.Fprintf(&b, "Task: %s\n\n", s.Task)
	if s.Best != nil {
		fmt.Fprintf(&b, "The program has the score %s; less is better.", score(s.Best))
		if s.Start != nil {
			fmt.Fprintf(&b, " It began with %s.", score(s.Start))
		}
		b.WriteString("\n\n")
	}
	for _, f := range s.Surface {
		fmt.Fprintf(&b, "File %s", f.Path)
		if len(f.Bodies) > 0 {
			fmt.Fprintf(&b, " (only the bodies of these functions may change: %s)", strings.Join(f.Bodies, ", "))
		}
		fmt.Fprintf(&b, ":\n\n```\n%s\n```\n\n", strings.TrimSuffix(f.Content, "\n"))
	}
	if s.Baseline != "" {
		fmt.Fprintf(&b, "The tests of this program do not pass. They print:\n\n```\n%s\n```\n\n", end(plain(s.Baseline), 8<<10))
	}
	for _, p := range s.History {
		fmt.Fprintf(&b, "Variant %d %s", p.Iteration, fate(p))
		for _, r := range p.Reasons {
			fmt.Fprintf(&b, "\n  %s", end(r, 500))
		}
		if p.Output != "" && !p.Accepted {
			fmt.Fprintf(&b, "\n  it printed: %s", strings.ReplaceAll(end(plain(p.Output), 1000), "\n", "\n    "))
		}
		b.WriteString("\n")
	}
	return []message{{Role: "system", Content: rules}, {Role: "user", Content: b.String()}}
}

func score(s *variant.Score) string { return fmt.Sprintf("%g %s", s.Value, s.Unit) }

func fate(p variant.Past) string {
	at := ""
	if p.Score != nil {
		at = " with the score " + score(p.Score)
	}
	if p.Note != "" {
		at += fmt.Sprintf(" (%s)", p.Note)
	}
	if p.Accepted {
		return "was accepted" + at
	}
	return fmt.Sprintf("was not accepted%s, and ended at %s:", at, p.Stage)
}

// end returns the last n bytes, since an error stands at the end.
func end(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "… " + strings.ToValidUTF8(s[len(s)-n:], "")
}

// plain takes the output out of the events of `go test -json`, which say the same in ten times as many tokens. Other
// lines stay as they are.
func plain(output string) string {
	var b strings.Builder
	for line := range strings.Lines(output) {
		var event struct{ Action, Output string }
		switch {
		case !strings.HasPrefix(line, `{"`) || json.Unmarshal([]byte(line), &event) != nil || event.Action == "":
			b.WriteString(line)
		case !strings.HasPrefix(event.Output, "=== "): // which test runs; its result names it again
			b.WriteString(event.Output)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
