// SPDX-License-Identifier: Apache-2.0

// Package box is both ends of the stream to a container of ours, and what is put into it. It knows nothing of containerd: any
// two pipes to a [supervisor] that is process 1 of its pid namespace will do, as in the tests.
//
//	host program ── Session ──▶ stdin ──▶ supervisor, process 1 of the box ── vfork, execve ──▶ payload ─▶ its children
//	                        ◀── stdout ◀──
//
// [Pack] reads a workspace by the rules of the specification before a box exists; [Install] lays out the supervisor's binary.
// A [Session] then opens a box, runs one job in it and lets it go:
//
//	packed, err := box.Pack(ctx, dir, spec.Workspace, rules)
//	…
//	s := box.NewSession(stdin, stdout)
//	hello, err := s.Open(ctx, box.Open{Idle: …, Hard: …, Dirs: box.DefaultDirs(), Volumes: …})
//	ending, err := s.Run(ctx, box.Job{Stage: …, Trees: []box.Tree{{packed, box.Workspace}}, Limits: …})
//	… read the counters of the box …
//	err = s.Exit()
//
// Nothing is collected inside: output is passed on as it comes, limits are watched on both sides, and an ending is raw; who
// judges it is package hostrun. Trees and artifacts are rows of items that cannot name a place outside, not tar: what is no
// directory, regular file or link cannot be said at all, and they cost no padding.
//
// # What is believed
//
// Everything that comes out of a box is hostile. Records have at most 64 KiB, nothing is allocated by a length, a word that
// cannot come now ends the session, and so do a result that contradicts itself or what was seen here, an artifact that was
// not asked for, and an end without the nonce that only the supervisor was told.
//
// # Errors
//
// Run returns an [executor.SetupError] if nothing was started, and an error that matches [executor.ErrLost] if the box did
// not say how the run ended: because it is gone, was silent for too long, or broke the rules ([stream.ErrProtocol]).
//
// # What it does not do
//
// A session proves nothing about the box: whoever made it has to hold [Hello] against what was asked for. A supervisor that
// the payload has taken over can report any wait status. Memory, processes and CPU are bounded by the box's own cgroup, not
// here; CPU time and tasks are sampled, and whoever counts the box's CPU time has to believe the supervisor's word about its
// own share. A volume that was full between two looks, and is not at the end, is not seen.
package box
