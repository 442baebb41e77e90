// SPDX-License-Identifier: Apache-2.0

// Package bubblewrap is the tier 1.5 executor: it runs a command on a private copy of a workspace inside namespaces of its
// own, which the program bubblewrap makes, started by a real unprivileged user. A run sees a read-only system, a /proc, /etc
// and /dev of its own, a loopback interface and nothing beyond it, no host process, and as writable places only its copy,
// HOME, TMPDIR and /dev/shm. It needs Linux, bubblewrap 0.8 or newer, and user namespaces.
//
//	host program ─▶ server ─▶ guard ─▶ bwrap ─▶ init (process 1) ─▶ payload
//	             ◀───────── status, usage, what failed ──────────┘
//
// Server and guard are those of tier 1 (internal/supervise). bubblewrap is started by the run's uid with an empty
// environment, gets its arguments through a descriptor, and executes our init, which starts the payload as its child,
// reaps, and reports what the kernel says. The init is the host program's own binary in a sealed memory file, entered at a
// function that needs no Go runtime: no file of ours lies in the view, nothing of the host program runs, and the start costs
// a fraction of a millisecond. bubblewrap's exit code is never a result; what it prints explains why there was no payload.
// Limits, the join of cgroups and the system call filter are applied by the init's child directly before execve, so they
// bind the payload and not what makes the sandbox.
//
// For a root caller every concurrent run has a uid of its own, and its writable places are one file system in memory, sized
// by Limits.Disk. For an ordinary caller the run keeps the caller's uid and the view protects the caller's files; the copy
// of the workspace is then on the host's disk.
//
// Importing the package registers the server's stage (see internal/reexec). It ends with Close, or with the program.
//
// # Errors
//
// [New] fails with an error that matches [executor.ErrUnsupported] and names reason and fix: no bubblewrap or one that is
// too old, user namespaces that a sysctl, a security module or an outer sandbox forbids, a /proc that is partly covered, no
// unprivileged uid for a root caller. A [*StartError] in it holds what bubblewrap printed. It never falls back to a weaker
// sandbox. Run fails as [executor.Executor] says; a failure of bubblewrap is a [*executor.SetupError] of the step "sandbox"
// around a *StartError.
//
// # What it does not do
//
//   - It gives no kernel of its own: what the filter lets through is the whole kernel surface, and more of it than in tier 1,
//     since sockets, System V IPC and everything else that a namespace makes private is allowed.
//   - The system is the host's: everything that others may read below /usr is visible, and so are versions, processors,
//     memory, disks and the boot id in /proc. MinimalRoot and FreshPerRun are not promised.
//   - A declared mount is shown as it is. A socket in it can be connected to, read-only or not: declare no directory that
//     holds one. A mount in another one must not be reached through a link in there.
//   - Artifacts are taken from the workspace alone, not from a copy of a declared mount in it.
//   - Files that every run sees are one file for all: a run can lock them (flock) and watch them (inotify), and so meet
//     other runs and programs of the host that do the same.
//   - Where no cgroup can be made, memory is limited per process and CPU time by sampling. The number of processes is bounded
//     all the same, but the kernel counts no refusals, so that a contained fork bomb may look like a success:
//     ProcessesBounded is not promised then.
//   - For an ordinary caller the workspace is not sized, so DiskBounded is not promised; HOME, TMPDIR and /dev/shm are as
//     large as Limits.Disk each. The kernel's counters for a user (inotify instances, pending signals, namespaces) are
//     shared with the caller.
//   - In cgroups of version 2 bubblewrap and the init are counted with the run: the memory limit covers the few MB that they
//     take. Their two tasks and their CPU time before the payload's start are added to the limits and taken off the figures.
//   - A protected path of the workspace, and every directory above it, is a mount point: they cannot be renamed or removed,
//     and a rename from one of these directories to another fails as between file systems.
//   - What is set-uid stays without effect, there is no terminal, and nested sandboxes do not work inside. No process of a
//     run can set limits, priority or processors of another one, since the init could be that.
package bubblewrap
