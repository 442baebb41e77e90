// SPDX-License-Identifier: Apache-2.0

// Package cgroup puts a run into control groups of its own: bounds on memory, tasks and processors that hold for the
// sum over the run, the counters that show which bound was met, and a way to kill all of it.
//
//	host := cgroup.Detect()
//	lease := host.Dirs(name)             // what will exist; written down before it does
//	group, err := host.Create(name, cgroup.Limits{Memory: 1 << 30, Processes: 128, CPUs: 1})
//	child := start(group.JoinFiles())    // the child writes "0" to each and is inside
//	stats, err := group.Stats()
//	err = group.Kill(ctx)
//	err = group.Remove(ctx)
//
// Hosts mix two versions of the interface. [Detect] finds out for each controller by itself which version this caller may
// use, by making a group and setting the limit once, and otherwise why not. Groups are made below the caller's own, so
// that whatever bounds the caller bounds its runs too; an ancestor is used only if it was delegated to the caller. The
// caller itself is never moved.
//
// # Errors
//
// A missing controller is not an error but a false [Host.Has] with a [Host.Reason]; limits of missing controllers are not
// set. [ErrName] means that a name or a directory is not one that this package would make.
//
// # What it does not do
//
//   - A process that may write to another group's cgroup.procs can leave. Runs must not see the cgroup file systems as
//     writable: another uid, Landlock or a mount namespace sees to that.
//   - OOM kills are counted when the victim was in the group, whichever group's limit was met.
//   - Disk and network are not bounded.
package cgroup
