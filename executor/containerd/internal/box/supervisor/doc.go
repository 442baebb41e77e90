// SPDX-License-Identifier: Apache-2.0

// Package supervisor is process 1 of a box.
//
// It takes one job from its standard input, unpacks the trees that come with it, starts the payload as a direct child (vfork,
// a fixed list of system calls, execve: see package supervise), passes its output on as it comes, kills whatever is alive
// when the payload has ended or a limit was met, and says how it ended. It decides nothing: what it reports is raw.
//
// A program that links this package is one: if it is process 1 and its only argument is [Marker], an init function
// of this package takes over and never returns. Everything else comes by the stream; neither arguments nor environment
// say anything that the payload could read.
//
// # Errors
//
// What is wrong with a job is told to the host, and the payload is not started. If the stream itself breaks, or a deadline
// passes, the supervisor ends, and the kernel kills everything in its pid namespace.
//
// # What it does not do
//
// It is not the boundary. Namespaces, capabilities, the system call filter and the limits of the box are made by whoever
// started it; it reports what it finds of them. Tasks and CPU time are sampled: what lives between two looks, and whose
// parent does not wait for it, is not seen.
package supervisor
