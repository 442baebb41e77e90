// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import "strings"

// StartError says why bubblewrap could not build the sandbox. [New] returns it inside an [*executor.UnsupportedError] with
// the same reason and fix, Run inside an [*executor.SetupError].
type StartError struct {
	Reason string // what it means
	Fix    string // what would change that
	Output string // what bubblewrap printed, if it ran
}

// Error names the reason, bubblewrap's words and the way out.
func (e *StartError) Error() string {
	var b strings.Builder
	b.WriteString("bubblewrap: " + e.Reason)
	if e.Output != "" {
		b.WriteString(" (" + e.Output + ")")
	}
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}
