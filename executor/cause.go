// SPDX-License-Identifier: Apache-2.0

package executor

import "fmt"

// Cause says why a run ended. If the host ended it, that is the cause; else the gravest limit that was met; else what
// the wait status says. Everything that was met is in [Result.Hits]. Set-up failure is an error, not a cause.
type Cause uint8

const (
	// CauseUnknown is the zero value. It is never OK.
	CauseUnknown Cause = iota
	// CauseExited: the payload ended by itself; any exit code, 0 included.
	CauseExited
	// CauseSignalled: the payload was ended by a signal that we did not send. `exit 139` is not this.
	CauseSignalled
	// CauseWallTimeout: the host's clock passed Limits.Wall and the host killed the tree.
	CauseWallTimeout
	// CauseCPUTimeout: the run's CPU counter passed Limits.CPU, or the payload died of SIGXCPU.
	CauseCPUTimeout
	// CauseOutOfMemory: the run's own counter of OOM kills is not 0, also when only a child died. Never guessed from SIGKILL.
	CauseOutOfMemory
	// CauseProcessLimit: the kernel refused to create a task because of Limits.Processes.
	CauseProcessLimit
	// CauseOutputLimit: a stream passed Limits.Output and the host killed the tree.
	CauseOutputLimit
	// CauseDiskFull: the run's writable file systems had no block or no inode left.
	CauseDiskFull
	// CauseFileSize: the payload died of SIGXFSZ. A program that ignores the signal sees EFBIG and exits as it likes.
	CauseFileSize
	// CausePolicyDenied: the payload died of SIGSYS, which the filter sends for foreign system call ABIs. Calls that the
	// filter answers with an errno are invisible to the host and are not claimed.
	CausePolicyDenied
	// CauseCancelled: ctx ended and the host killed the tree.
	CauseCancelled
	// CauseNotFound: the program, or the interpreter that it names, does not exist in the run's view.
	CauseNotFound
	// CauseNotExecutable: the program exists but the kernel does not execute it.
	CauseNotExecutable

	endOfCauses
)

var causeNames = [endOfCauses]string{
	"unknown", "exited", "signalled", "wall-timeout", "cpu-timeout", "out-of-memory", "process-limit", "output-limit",
	"disk-full", "file-size", "policy-denied", "cancelled", "not-found", "not-executable",
}

// String returns a stable lower-case name, such as "wall-timeout".
func (c Cause) String() string {
	if c < endOfCauses {
		return causeNames[c]
	}
	return fmt.Sprintf("cause(%d)", uint8(c))
}

// MarshalText writes the name.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a name; one that is not defined is an error.
func (c *Cause) UnmarshalText(text []byte) error {
	for i, name := range causeNames {
		if name == string(text) {
			*c = Cause(i)
			return nil
		}
	}
	return fmt.Errorf("executor: cause %q is not defined", text)
}
