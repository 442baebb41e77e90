// SPDX-License-Identifier: Apache-2.0

package containerd

import "strings"

// DaemonError says what a daemon, a shim or a runtime could not do. [New] returns it inside an
// [*executor.UnsupportedError], which then has its reason and fix, Run inside an [*executor.SetupError].
type DaemonError struct {
	Op     string // what was asked for: "create task"
	Reason string // what it means; empty if that is not known
	Fix    string // what would change that
	Err    error  // the daemon's words
}

// Error names the operation, the reason, the daemon's words and the way out.
func (e *DaemonError) Error() string {
	var b strings.Builder
	b.WriteString("containerd: " + e.Op)
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

// Unwrap returns the daemon's words.
func (e *DaemonError) Unwrap() error { return e.Err }
