// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"bytes"
	"fmt"
	"syscall"
	"time"
)

// Result is the truth about one run, taken by the host from the kernel. The zero value is not OK.
type Result struct {
	Cause    Cause
	ExitCode int            // valid for CauseExited and where the payload exited by itself all the same; else -1
	Signal   syscall.Signal // the signal of the wait status; 0 if the payload exited by itself
	Detail   string         // one line for people: which limit, which path; never needed to decide

	Stdout, Stderr Output
	Usage          Usage
	Hits           []Hit         // every limit met, with the counter that shows it
	Enforced       []Enforcement // limits in the order of Limits, then capabilities in their order
	Artifacts      []Artifact
	Refused        []Refusal // artifacts that were not taken, and patterns that nothing matched
	Timing         Timing
}

// OK reports whether the payload exited by itself with code 0 and met no limit on the way.
func (r *Result) OK() bool {
	return r != nil && r.Cause == CauseExited && r.ExitCode == 0
}

// Output is what is kept of one stream: its beginning and its end, as bytes. All of it is in Head and Tail, in this
// order, unless Truncated.
type Output struct {
	Head, Tail []byte // at most CaptureSize bytes each
	Total      int64  // bytes that the payload wrote and the host read
	Truncated  bool   // bytes between Head and Tail are missing
	LiveErr    error  // why the live copy was cut off, if it was
	Incomplete bool   // the end of the stream was not seen in time; bytes may be missing at the end
}

// Bytes returns Head and Tail as one slice, with one line between them that says what is missing if Truncated.
func (o Output) Bytes() []byte {
	if !o.Truncated {
		return append(bytes.Clone(o.Head), o.Tail...)
	}
	missing := o.Total - int64(len(o.Head)) - int64(len(o.Tail))
	gap := fmt.Sprintf("\n[%d bytes not kept]\n", missing)
	return append(append(bytes.Clone(o.Head), gap...), o.Tail...)
}

// String returns Bytes as a string.
func (o Output) String() string { return string(o.Bytes()) }

// Usage is what the run consumed. Each figure names its source; [ByNone] means that it was not measured, which is not
// the same as 0.
type Usage struct {
	Wall            time.Duration // from the payload's start to its end
	User, System    time.Duration
	CPUBy           Mechanism // ByRusage covers only processes that were waited for
	PeakMemory      int64     // bytes
	PeakMemoryBy    Mechanism // ByRusage is the largest resident set of one process, not a sum
	PeakProcesses   int
	PeakProcessesBy Mechanism
}

// Timing says how long the phases of Run took. Run is Usage.Wall plus the time to notice the end.
type Timing struct {
	Setup, Run, Teardown time.Duration
}

// Hit is a limit that the run met.
type Hit struct {
	Limit string    // the name of a field of Limits
	Count int64     // what the counter says: events, or bytes
	By    Mechanism // where the counter is
}

// Enforcement says what enforces one limit or one capability. There is one entry for every field of Limits and for every
// promised capability.
type Enforcement struct {
	Limit string // the name of a field of Limits, or of a capability
	By    Mechanism
	Scope Scope
	Value int64  // what the kernel reported after setting: bytes, tasks, descriptors, or nanoseconds; 0 for capabilities
	Note  string // what a careful reader must know: a weaker scope, a rounding
}

// Mechanism names what enforces a limit or measures a figure.
type Mechanism string

// The mechanisms.
const (
	ByNone       Mechanism = "none"
	ByCgroupV1   Mechanism = "cgroup-v1"
	ByCgroupV2   Mechanism = "cgroup-v2"
	ByRlimit     Mechanism = "rlimit"
	ByLandlock   Mechanism = "landlock"
	BySeccomp    Mechanism = "seccomp"
	ByNamespace  Mechanism = "namespace"
	ByUID        Mechanism = "uid"
	ByTmpfs      Mechanism = "tmpfs"
	BySupervisor Mechanism = "supervisor" // processes of ours: clock, counters of bytes, sampling, wait
	ByAffinity   Mechanism = "affinity"
	ByRusage     Mechanism = "rusage"
)

// Scope says over what a limit is summed.
type Scope string

// The scopes.
const (
	PerProcess Scope = "per process"
	PerUID     Scope = "per uid"
	PerRun     Scope = "per run"
)

// Artifact is a file that came back.
type Artifact struct {
	Path       string // below the workspace, slash-separated; the same below ArtifactDir
	Size       int64
	SHA256     string // hex
	Executable bool
}

// Refusal is a path that was not taken, or a pattern that matched nothing.
type Refusal struct {
	Path   string // the path, or the pattern
	Reason string
}
