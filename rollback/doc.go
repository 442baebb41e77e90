// SPDX-License-Identifier: Apache-2.0

// Package rollback takes checkpoints of a directory tree and brings the tree back to one of them, exactly: for a program
// that edits its own code and will sooner or later keep a bad edit, lose a file, or die in the middle of a change.
//
// A [Store] is a directory outside the tree. [Store.Checkpoint] keeps the whole tree, not what some edit touched: every
// file, directory and symbolic link that no pattern of Options.Exclude names, with modes, times and hard links.
// [Store.Restore] changes only what differs, and takes a checkpoint of what it finds before, so that a restore can be
// undone. [Store.Recover] finishes a restore that a crash interrupted; call it after [Open].
//
//	s, err := rollback.Open("/var/lib/loop/checkpoints", nil)
//	...
//	before, err := s.Checkpoint(ctx, "/work/tree", rollback.Meta{Label: "before edit 7"})
//	... the edit ...
//	_, err = s.Restore(ctx, before.ID, "/work/tree")
//
// # What holds
//
// A checkpoint exists exactly when its manifest has its name, which happens after all its bytes are durable. Its [ID] is
// the SHA-256 of the manifest, the manifest names the hash of the root directory, and so on down: a changed, swapped or
// missing byte is an error that names it, never another tree. Nothing is written into a tree before its bytes were hashed.
// With SyncDurable, the default, what a call returned survives a power cut; a tree is as before a restore or as the
// checkpoint, whenever the process dies.
//
// A restore never destroys bytes that are not in the store. What stood in the way and is not in the store is moved to the
// quarantine, and reported. Nothing named .git is read, written or moved inside a directory that the checkpoint knows; the
// one exception is a directory that cannot be captured as it stands (unreadable, never at rest, beyond the limits), which
// ForeignQuarantine moves aside whole, with whatever is in it.
//
// Locks are those of the kernel and end with the process. Several processes may use one store: reading, checkpoints and
// restores share it, one writer for each tree; [Store.Prune] and [Store.Delete] have it for themselves.
//
// # What a store is made of
//
//	format.json        version, name of the store, whether it has a key
//	lock               locked: shared by most calls, exclusive by Prune and Delete
//	packs/             file contents and directories, compressed; one file for all that a checkpoint added
//	ckpt/              manifests, by ID
//	labels.log         pins and restores; records with a chained CRC
//	trees/             for each tree: the marker that allows a restore, a cache, the journal of a restore under way
//	quarantine/        what was moved aside; nothing here is ever deleted by this package
//	tmp/               what is unfinished; leftovers of dead processes are removed by Open
//
// It holds what the tree holds, secrets included. Directories are 0700 and files 0600; nothing in it can be executed, and
// nothing is a serialisation that could run code. What is in quarantine came by rename and has its own modes, behind a
// directory that is closed to others.
//
// # Errors
//
// Each call names what it fails with: [ErrNotFound], [ErrCorrupt], [ErrTarget], [ErrPending] and so on are matched by
// [errors.Is]; [CorruptError], [TargetError], [LimitError], [UnstableError] and [RestoreError] carry the detail. Several
// failures at once come as one error with Unwrap() []error. [ErrNotFound] never leads to another checkpoint being taken.
// A damaged part of a store spoils only what needs it: [Store.Verify] finds all damage, [Store.All] goes on after it, and
// the next checkpoint stores again what was found damaged.
//
// # What it does not do
//
// It has no point-in-time view of a tree that is being written: it notices, tries again and then fails. While a restore
// applies its changes others can see a mixed tree; stop them first. It undoes nothing outside the tree.
//
// What Options.Exclude names is neither checked nor taken back, and the default names caches. A program that wants to
// survive its own rollback can leave something there: a .pyc file, say, with the time and size of the source that will be
// restored, which Python then runs in its place. Exclude nothing, or remove the caches after a restore, where the tree's
// last writer is not trusted.
//
// It is no defence against somebody who can write as the owner of the store. With Options.Key such a person cannot make or
// change a checkpoint, a journal or a cache, but can delete one, replay an older state of the whole store, change what
// labels.log says of pins, or register a directory as a tree. Cutting whole records off the end of labels.log is not
// noticed. Nor is it one against a process that runs as the tree's owner while a restore is under way: that can hold the
// tree's lock, or take all rights from the root.
//
// It does not encrypt, copy to other machines, or split files by content. It has no commits, branches or merges, and
// does not repair a .git directory. It does not decide when to roll back. It runs on Linux; elsewhere [Open] returns
// [ErrUnsupported].
package rollback
