// SPDX-License-Identifier: Apache-2.0

// Package rlimit is the tier 1 executor: it runs a command on a private copy of a workspace without namespaces, behind
// everything that the kernel offers for a plain process: a uid reserved for the run, resource limits, cgroups, Landlock,
// seccomp, a file system of its own for what it writes. It needs Linux and nothing installed; it does more for root, and
// says in Capabilities what that is on this host.
//
// Importing the package registers a stage of the running program (see internal/reexec): an executor starts the program's
// own binary once more, as a small server that starts and kills the payloads. It ends with Close, or with the program.
//
// # Errors
//
// [New] fails with an error that matches [executor.ErrUnsupported] and names reason and fix where the kernel lacks what
// every run needs (seccomp, no_new_privs, subreapers), and on other systems. Run fails as [executor.Executor] says.
//
// # What it does not do
//
//   - It hides no processes: a run can list the host's processes and read their argument vectors in /proc. It has the
//     host's hostname and sees the host's mounts. HostEnvHidden is never promised.
//   - It hides contents, not names: Landlock leaves stat, readlink and access alone, so a run can learn that a file exists
//     and how large it is.
//   - It gives no kernel of its own: what the filter lets through is the whole kernel surface.
//   - For an ordinary caller the run has the caller's uid. Memory is then limited per process only, the number of
//     processes by what the user may have, and a fork bomb can win against the walk that kills it: TreeKilled,
//     MemoryBounded, ProcessesBounded, DiskBounded and ProtectedReadOnly are not promised unless a delegated cgroup
//     provides them.
//   - Landlock and the filter leave a few ways to touch what is not the run's: it can set the times of a file that everybody
//     may write to "now", take a flock on a file that it may read, and watch directories with inotify. A run of an ordinary
//     caller shares the kernel's counters for a user (inotify instances, pending signals, descriptors in flight) with the
//     caller, and can use them up until it ends.
//   - The memory limit is the kernel's account, which leaves out some of the kernel's own: half a million file locks, about
//     100 MB, are not in it.
//   - Loopback is not available inside unless Sockets says so, and then the host's own is.
package rlimit
