// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"iter"
	"strings"
)

// Call is one row of the list.
type Call struct {
	Name   string // of the system call; in parentheses for what concerns all calls
	When   string // which arguments; "" means always
	Answer Answer
	Reason string
}

// String prints the row on one line.
func (c Call) String() string {
	if c.When == "" {
		return fmt.Sprintf("%s: %v: %s", c.Name, c.Answer, c.Reason)
	}
	return fmt.Sprintf("%s when %s: %v: %s", c.Name, c.When, c.Answer, c.Reason)
}

// Calls yields the list for o, in a fixed order: what concerns every call first, then call by call. Where a call has
// several rows the first that matches decides; a call without a row that matches is allowed.
func Calls(o Options) iter.Seq[Call] {
	return func(yield func(Call) bool) {
		for _, c := range general {
			if !yield(c) {
				return
			}
		}
		for _, r := range rules(o) {
			for _, name := range r.names {
				if !yield(Call{Name: name, When: condition(r.when), Answer: r.answer, Reason: r.reason}) {
					return
				}
			}
		}
	}
}

func condition(tests []test) string {
	texts := make([]string, len(tests))
	for i, t := range tests {
		texts[i] = t.String()
	}
	return strings.Join(texts, " and ")
}

// general describes the first instructions of the program; prologue writes them.
var general = []Call{
	{"(foreign ABI)", "", KillProcess, "numbers of another architecture mean other calls"},
	{"(x32 ABI)", "amd64 and number >= 0x40000000", KillProcess, "the same calls under other numbers"},
	{"(unknown call)", "number in a gap or above the newest known", ENOSYS,
		"not judged yet; a kernel without the call answers the same"},
}
