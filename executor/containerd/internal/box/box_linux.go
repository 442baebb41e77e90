// SPDX-License-Identifier: Apache-2.0

package box

import (
	"io"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/supervise"
)

// Paths in a box. Mount is a sized tmpfs of the box's root, mode 0755; the supervisor makes what is below it.
const (
	Mount         = "/box"
	Workspace     = Mount + "/workspace"
	Home          = Mount + "/home"
	Temp          = Mount + "/tmp"
	SupervisorDir = "/.containment" // read-only, mode 0500, of the box's root: the payload cannot enter
)

// MaxListed bounds each list in a [Hello].
const MaxListed = stream.MaxListed

// UID and GID are the payload's ids in a box.
const UID, GID = 10001, 10001

// The words of the stream that host and supervisor share.
type (
	// Dir is a directory that the supervisor makes, if it is not there, and gives its mode and owner.
	Dir = stream.Dir
	// Hello is what the supervisor found when it began. It is evidence only as far as the box is intact.
	Hello = stream.Hello
	// Mounted is one mount in the box.
	Mounted = stream.Mounted
	// Volume is the fill level of a volume of [Open].
	Volume = stream.Volume
)

// Open is the first word of the host. Zero deadlines take the built-in ones, which are short.
type Open struct {
	Idle time.Duration // without a job the box ends itself after that; default 10 s
	Hard time.Duration // after that the box ends itself whatever happens; default 20 s
	Dirs []Dir         // in their order
	// Volumes are mount points whose fill level is watched and reported: every sized tmpfs that the payload can write.
	Volumes []string
}

// DefaultDirs are the directories of the paths above, and /tmp and /dev/shm.
func DefaultDirs() []Dir {
	const all, sticky = 0o755, 0o1777
	return []Dir{
		{Path: Mount, Mode: all},
		{Path: Workspace, Mode: all, Owned: true}, {Path: Home, Mode: all, Owned: true}, {Path: Temp, Mode: sticky},
		{Path: "/tmp", Mode: sticky}, {Path: "/dev/shm", Mode: sticky},
	}
}

// Tree is a packed directory and where it goes.
type Tree struct {
	Packed *Packed
	Target string // absolute path of an empty directory inside
}

// Job is one run in a box.
type Job struct {
	// Stage is what the payload's process does and becomes: Programs, Args, Env, Dir, Rlimits, Affinity and Filter are used;
	// UID and GID are those of the constants. Dir is Workspace or lies below it. Filter must not be empty.
	Stage  supervise.Job
	Trees  []Tree          // in their order, before the start
	Limits executor.Limits // with defaults; Wall, CPU, Output, ArtifactBytes and ArtifactFiles are used
	// Artifacts are taken from below Workspace.
	Artifacts Artifacts

	Stdin          io.Reader // nil: empty
	Stdout, Stderr io.Writer // live copies; nil: none

	// Spent is asked ten times in a second, while the payload may be alive, whether it has used more than Limits.CPU by an
	// account that the box does not have. The run then ends by it. Nil: nobody is asked.
	Spent func() bool

	// Ended is called when nothing of the payload is alive, before artifacts are read, whose transfer costs time in the box.
	// Nil: nothing.
	Ended func()
}

// Artifacts say what comes back; no patterns: nothing. The fields are those of the request of package artifact.
type Artifacts struct {
	Patterns              []string
	Dest                  string
	ID                    string
	Exclude, ExcludeNames []string
}

// Ending is how a run ended. The embedded part is what hostrun.Judge, Usage and Timing take.
type Ending struct {
	hostrun.Ending
	Stdout, Stderr executor.Output
	Over           [2]bool // a stream passed Limits.Output
	Volumes        []Volume
	Threads        int           // of the supervisor itself, at the end: a counter of the box's tasks has them too
	Own            time.Duration // CPU time of the supervisor itself since it began, which a counter of the box has too
	Artifacts      []executor.Artifact
	Refused        []executor.Refusal
}
