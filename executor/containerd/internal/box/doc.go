// SPDX-License-Identifier: Apache-2.0

// Package box is the inside of a container of ours and both ends of the stream to it. It knows nothing of containerd.
//
//	host program ── Session ──▶ stdin ──▶ supervisor, process 1 of the box ── vfork, execve ──▶ payload ─▶ its children
//	                        ◀── stdout ◀──
package box
