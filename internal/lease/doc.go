// SPDX-License-Identifier: Apache-2.0

// Package lease lets a later process find and remove what a killed one left behind.
//
// A [Lease] is a file in a state directory on which its holder has an exclusive lock. It is written before the first
// resource is made and names everything that will exist. The kernel drops the lock when the holder dies, however it
// dies, and [Dir.Sweep] takes exactly the leases whose lock is free. Age is never evidence, and neither is a process id:
// a slow run of a live holder is left alone for as long as it lives.
//
//	leases, err := lease.Open(dir, 0o700)
//	err = leases.Sweep(ctx, clean)           // once, at start-up
//	rec := lease.Record{ID: lease.NewID(), Scratch: …}
//	l, err := leases.Acquire(rec)            // before anything is made
//	… make, run, remove …
//	err = l.Release()
//
// [Slots] is the same idea for a range of user ids that are reserved for runs: one lock file for each id, shared by all
// supervisors of the host. A slot whose holder died, or gave up on it, is handed out as [Slot.Dirty].
//
// # Why a sweep never meets half a lease
//
// Acquire creates the file under a name that ends in ".new", locks it, writes it and renames it to its own name. A free
// ".new" file therefore means that Acquire did not return and nothing was made; it is removed without more ado. A file
// with its own name was complete once: if it cannot be read any more, nobody knows what it named, and it is reported
// and kept.
//
// # Errors
//
// [*DirError]: the directory cannot be trusted; it says why and what to do. [*CorruptError]: a lease cannot be read.
// [*RangeError]: ids cannot be reserved. [ErrNoSlot]: all ids are in use. On systems other than Linux everything fails
// with an error that matches [errors.ErrUnsupported].
//
// # What it does not do
//
// It removes nothing but its own files: what a lease names is cleaned by the caller's function. It does not sync to disk:
// a lease survives the death of its holder, not that of the machine. Locks are those of flock(2), so the directory must
// be on a local file system. It defends the directory against other users, not against the same one.
package lease
