// SPDX-License-Identifier: Apache-2.0

// Package supervise starts a payload under a monitor: a small process of ours that stands between the host program and
// the payload, prepares the payload's last steps before execve, and answers for its whole process tree.
//
//	host program ── control pipe ──▶ monitor ── fork, system calls, execve ──▶ payload ─▶ its children
//	             ◀── report pipe ──
//
// The monitor is the subreaper of everything the payload starts, so nothing can leave its tree: an orphan becomes its
// child. It is done when the kernel says that it has no child left (ECHILD), which proves that the tree is dead. The host
// ends a run by closing the control pipe. If the host program dies, by SIGKILL too, the kernel closes the pipe and the
// same thing happens: no moment exists in which a payload lives that nobody will kill. The payload also has a parent
// death signal bound to the monitor's main thread, which lives as long as the monitor.
//
// The payload is forked by the monitor's main thread and runs a fixed list of raw system calls between fork and execve
// (see program): session, cgroups, limits, ids, no_new_privs, Landlock, seccomp, and a check of what it then holds. Only
// the payload is restricted; the monitor stays able to kill it.
//
// # Errors
//
// What fails before execve is reported with its step and errno as an [Event] of kind Failed; the payload did not run.
//
// # What it does not do
//
// Without a uid reserved for the run ([Job].Reserved), the monitor kills by walking the process tree in /proc. A fork bomb
// with the host's own uid can be faster than any walk; nothing here promises to win that race.
package supervise
