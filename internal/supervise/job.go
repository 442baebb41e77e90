// SPDX-License-Identifier: Apache-2.0

package supervise

import "encoding/binary"

// Job is what the server is told of one run. All of it was decided by the host program; nothing comes from the payload.
type Job struct {
	Programs []string // absolute paths, or paths relative to Dir, that are tried in this order
	Args     []string
	Env      []string
	Dir      string

	// UID and GID are the payload's ids; -1 keeps the caller's. Reserved says that nothing but this run uses UID, so that
	// "every process of UID" and "every process of the run" are the same set.
	UID, GID int
	Reserved bool

	Rlimits   []Rlimit
	Affinity  []uint64 // processor mask; empty leaves it alone
	Reachable []string // paths that the payload's user must be able to reach, or the run fails before it starts
	Filter    []byte   // seccomp program, an array of struct sock_filter

	// Sample asks for figures of the tree (CPU, tasks), for hosts where no cgroup counts.
	Sample bool

	// Wrapper, if not nil, stands between guard and payload. Dir, Programs and what else names files then mean the wrapper's
	// view, except for Reachable.
	Wrapper *Wrapper

	// Landlock, Cgroups and Into say which of the optional descriptors of [Files] are there. Start fills them in.
	Landlock bool
	Cgroups  int
	Into     bool
}

// Wrapper is a program that makes namespaces and a view of the files and then executes our init (see [InitPath]), which
// starts the payload. It starts with the payload's ids, an empty environment and the descriptors that it needs.
type Wrapper struct {
	Program string // absolute path
	Args    []string
	// UID and GID are the ids that the payload must have inside.
	UID, GID int
}

// Rlimit is one resource limit of the payload.
type Rlimit struct {
	Resource int
	Soft     uint64
	Hard     uint64
}

// Step is a step between fork and execve, or one of the monitor itself.
type Step uint32

// The steps, in their order.
const (
	StepMonitor Step = iota + 1 // the preparation of the guard
	StepUIDBusy                 // a process of the reserved uid exists already
	StepSession
	StepCgroup
	StepStdio
	StepOOMScore
	StepRlimit
	StepAffinity
	StepUser
	StepCapabilities
	StepDeathSignal
	StepDir
	StepReachable // errno and the index of Job.Reachable
	StepSignals
	StepDescriptors
	StepNoNewPrivs
	StepLandlock
	StepSeccomp
	StepCheck // the payload's process held something else than it should
	StepExec
	StepWrapper // the wrapper was not executed, or ended before it had executed our init
)

var stepNames = map[Step]string{
	StepMonitor: "monitor", StepUIDBusy: "uid busy", StepSession: "session", StepCgroup: "cgroup", StepStdio: "stdio",
	StepOOMScore: "oom_score_adj", StepRlimit: "rlimit", StepAffinity: "affinity", StepUser: "uid", StepCapabilities: "capabilities",
	StepDeathSignal: "death signal", StepDir: "working directory", StepReachable: "mount", StepSignals: "signals",
	StepDescriptors: "descriptors", StepNoNewPrivs: "no_new_privs", StepLandlock: "landlock", StepSeccomp: "seccomp",
	StepCheck: "check before exec", StepExec: "exec", StepWrapper: "wrapper",
}

// String names the step as in error messages.
func (s Step) String() string {
	if name, ok := stepNames[s]; ok {
		return name
	}
	return "unknown step"
}

// Kind says what an [Event] reports.
type Kind uint32

// The kinds of events. A run that goes well reports Started, Ended, Empty; one that never started Failed, Empty. Behind a
// wrapper, Reaped and Wrapped come before Empty if nothing was killed from outside.
const (
	Started Kind = iota + 1 // execve succeeded
	Failed                  // a step failed; the payload did not run
	Ended                   // the leader ended: Status and usage of it and of the children it waited for
	Sampled                 // CPU and tasks of the tree, seen by sampling
	Empty                   // no process of the run is left: usage of everything that was waited for
	Reaped                  // the same within the wrapper's namespace, from our init: usage without wrapper and init
	Wrapped                 // the wrapper ended: Status; the payload was not started if nothing else was reported
)

// Event is a report of a guard or the server. It has a fixed size, below the size that a pipe writes in one piece.
type Event struct {
	Kind  Kind
	Step  Step
	Errno uint32
	// Detail of Failed is the index of the path or, at StepExec, 1 if the program exists and its interpreter does not; of
	// Empty it is 1 if the server was asked to kill.
	Detail uint32
	Status uint32 // wait status
	_      uint32
	User   int64 // nanoseconds
	System int64
	MaxRSS int64 // bytes, of the largest process
	CPU    int64 // sampled sum over the tree in nanoseconds; 0 if not sampled
	Tasks  int64 // largest sampled number of tasks
}

// encode returns the bytes that a guard would write.
func (e Event) encode() ([]byte, error) { return binary.Append(nil, binary.NativeEndian, e) }
