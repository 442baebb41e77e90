// SPDX-License-Identifier: Apache-2.0

// Package supervise starts payloads, each under a guard: a small process of ours that stands between the host program and
// the payload and answers for its whole process tree.
//
//	host program ── socket: jobs ──▶ server ── fork ──▶ guard ── fork, system calls, execve ──▶ payload ─▶ its children
//	             ── a control pipe for each run ──▶ server
//	             ◀── a report pipe for each run ── guard
//
// The server is the host program's binary, re-executed once for an executor; it forks, kills and samples. A guard is the
// subreaper of everything its payload starts, so nothing can leave its tree: an orphan becomes its child. It is done when
// the kernel says that it has no child left (ECHILD), which proves that the tree is dead.
//
// The host program ends a run by closing its control pipe. If the host program dies, by SIGKILL too, the kernel closes
// the pipes and the same thing happens: no moment exists in which a payload lives that nobody will kill. A guard dies with
// the server, and a payload with its guard, by death signals bound to threads that live as long as their processes.
//
// Between its fork and execve, a payload's process runs a fixed list of raw system calls (see program): session, cgroups,
// limits, ids, no_new_privs, Landlock, seccomp, and a check of what it then holds. Only the payload is restricted; guard and
// server stay able to wait for it and to kill it. A guard is forked and never executes anything, so a run costs two forks
// and the payload's own execve; the start of a Go program, several milliseconds, is paid once.
//
// A payload may stand behind a wrapper ([Job].Wrapper): a program that makes namespaces and a view of the files, started in the
// payload's place with the payload's ids, an empty environment and the few descriptors that it needs. It executes our init
// ([NewInit], [InitPath]) as process 1 of its namespace. That is this binary once more, entered at a function that does what
// a guard does: start the payload by the same list of system calls, reap, report on the same pipe, kill what is left. The
// guard outside stays the reaper of the wrapper, and the proof that everything is dead.
//
// Where this process is process 1 of its namespace itself it needs neither server nor guard: [StartChild] starts a payload as its
// direct child, by the same list of system calls, and [Sampler] looks at the tree.
//
// # Errors
//
// What fails before execve is reported with its step and errno as an [Event] of kind Failed; the payload did not run. A
// wrapper that fails is an event of kind Wrapped with nothing before it. A server that was killed is started again for the
// next run.
//
// # What it does not do
//
// Without a uid reserved for the run ([Job].Reserved), the server kills by walking the process tree in /proc. A fork bomb
// with the host's own uid can be faster than any walk; nothing here promises to win that race.
package supervise
