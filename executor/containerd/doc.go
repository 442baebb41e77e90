// SPDX-License-Identifier: Apache-2.0

// Package containerd is the tier 2 executor: it runs each command in a fresh container, which it calls a box, made by a
// containerd daemon from 1.6.20 on and an OCI runtime. A box has user, mount, process, network, IPC, UTS and cgroup
// namespaces of its own, a range of ids that no other box has, no network but loopback, a read-only root that holds what was
// declared and nothing else, sized file systems in memory as the only places to write, and limits in cgroups.
//
//	host program ─▶ daemon ─▶ shim ─▶ runtime            (make and remove the box)
//	     └──── FIFOs ──────── shim ─▶ supervisor, process 1 of the box ─▶ payload
//
// Process 1 is ours. The job and the copy of the workspace go in by one stream, output, verdict and artifacts come out by
// another one; nothing of the workspace is ever mounted, and the payload has another uid than process 1 and no way to it. It
// keeps time, counts output, samples, kills and reaps inside; the host has timers of its own behind it, reads the kernel's
// counters from outside, and treats every byte that comes out as hostile. What process 1 found about its box is compared with
// what was ordered before there is a payload.
//
// A box ends with its run. If the host program is killed, the box loses its input and ends by itself; what it was made of is
// removed by the next executor, in [New] or within Config.SweepEvery. A daemon that is started anew in the middle of a run
// loses nothing. With Config.Warm, boxes are made ahead, each for one run that would have got exactly such a box. When such a
// run returns every process of its box is dead; the daemon's record of it, its cgroup and its directory go a moment later, and
// Close waits for that and returns what could not be removed.
//
// # Who is trusted
//
// Whoever can use the daemon's socket is root on the daemon's host, and the host program can. So it is part of the trusted
// base, and its user is root. The socket is never shown to a run, nor a directory that holds one of the usual runtime sockets.
//
// The caller may be in a container itself: then bind Config.RuntimeDir at the same path into it, beside the socket. Mounts of
// runs must be vouched for in Config.DaemonPath there. Where no daemon runs, Config.Managed or [StartDaemon] start a private
// one, which needs root on the host itself.
//
// # Errors
//
// [New] fails with an error that matches [executor.ErrUnsupported] and names reason and fix: no daemon, a forbidden socket, a
// daemon that is too old or does not answer, no runtime or shim, a runtime with known breakouts (unless
// Config.DangerAllowOldRuntime accepts them by name), a missing image, a root without mount points, a box that is not what was
// ordered. It waits for nothing without bound. Run fails as [executor.Executor] says; what a daemon, a shim or a runtime could
// not do is a [*DaemonError] inside a [*executor.SetupError] or [*executor.CleanupError].
//
// # What it does not do
//
//   - A box shares the kernel with the host. What the two filters let through is the kernel's surface; only a runtime with a
//     kernel of its own (gVisor, Config.Runtime) takes that away, and OwnKernel is promised only if a box has shown it.
//   - Nothing is pulled, built or updated. An imported archive stays in the daemon.
//   - It cannot see what a distribution has mended in an old runc under an old version number.
//   - /proc of a box shows processors, memory, kernel version and boot id of the host, and /proc/self/mountinfo the host's
//     paths of what is mounted.
//   - All that a run can write is in memory, and counts as such. A workspace must fit beside the limit; its size is rounded up,
//     so that a run may have up to an eighth of the copy's size more than Limits.Memory and Limits.Disk.
//   - The number of tasks is bounded by RLIMIT_NPROC for ids that only this box has. The kernel counts no refusals of that: a
//     burst of forks between two samples, on a kernel without pids.peak, can be contained and go unseen.
//   - Copies of mounts (CopyOnWrite) are not made, and targets below /box are refused. A mount is shown as it is: a socket in
//     it can be connected to.
//   - Each set of mounts that runs declare leaves an empty skeleton directory of some 20 files until Close.
//   - Machines on which several programs use this package from different containers need ranges of their own in Config.IDs:
//     the locks are in /run/containment/containerd/ids of each.
//   - The kernel counts inotify instances (fs.inotify.max_user_instances) of all boxes together for the host's root: a run
//     that takes all of them makes that call fail elsewhere.
//   - CPU time of children that nobody waits for and that end between two samples is not seen by process 1. The host, which
//     looks at the cgroup's counter ten times in a second, ends such a run. Where it cannot see the cgroup (a caller in a
//     container, gVisor) the time is in the verdict all the same, but the run may go on until Limits.Wall, at Limits.CPUs.
//   - Swap is off and disk and network traffic need no limit; processor caches, memory bandwidth and time are shared.
package containerd
