// SPDX-License-Identifier: Apache-2.0

package rollback

import "time"

// Kind says who asked for a checkpoint.
type Kind uint8

const (
	// User: a call of [Store.Checkpoint].
	User Kind = iota + 1
	// Safety: a restore, of what it found.
	Safety
)

// Meta is what the caller says about a checkpoint: labels and scores, never configuration or environment.
type Meta struct {
	Label  string
	Parent ID                // zero: the last checkpoint of this tree
	Values map[string]string // at most 64, 4 KiB in all
}

// Checkpoint describes a tree as it was.
type Checkpoint struct {
	ID, Parent         ID
	Tree               string // the root's path when it was taken
	Time               time.Time
	Seq                uint64 // greater than that of any checkpoint that the store had when it was taken
	Kind               Kind
	Meta               Meta
	Digest             Digest
	Pinned             string // why; empty: not pinned
	Files, Dirs, Links int    // regular files (every name of a hard link counts), directories below the root, symbolic links
	Bytes              int64  // sum of the files' sizes
	Added              int64  // bytes that the store grew by
	Skipped            []Skipped
}

// Skipped is something that is no part of the checkpoint though no pattern excludes it.
type Skipped struct{ Path, Why string }

// Op says what a change does.
type Op uint8

const (
	// Create: there was nothing.
	Create Op = iota + 1
	// Replace: other bytes or another link target.
	Replace
	// Remove: the checkpoint has nothing there.
	Remove
	// Retype: a file became a directory, a link a file, and the like.
	Retype
	// Attributes: mode, owner, time, extended attributes or the partners of a hard link.
	Attributes
)

// Change is one difference: what turns the first tree into the second.
type Change struct {
	Path string // relative to the root, with slashes; "." is the root itself
	Op   Op
}

// Restoration says what a restore did, or for a plan would do.
type Restoration struct {
	Tree        string // the root
	To          ID
	Safety      ID // the state before; restore it to undo. Zero in a plan, or where nothing had to change
	Changes     []Change
	Kept        []Foreign // uncaptured entries in the way that stayed where they were
	Quarantined []Quarantined
	Digest      Digest // of the tree as it is now
	Recovered   bool   // finished by Recover
	Timing      Timing
}

// Foreign is an entry that no checkpoint holds.
type Foreign struct{ Path, Why string }

// Quarantined says where something was moved. Nothing there is ever deleted by this package.
type Quarantined struct{ Path, Where, Why string }

// Timing of a restore.
type Timing struct{ Scan, Stage, Apply, Verify time.Duration }

// Pruned says what [Store.Prune] deleted.
type Pruned struct {
	Checkpoints []ID
	Packs       int
	Bytes       int64 // freed
}

// Stats sums up a store.
type Stats struct {
	Checkpoints, Pinned, Trees, Packs, Objects int
	Bytes                                      int64 // of all packs and manifests, on disk
	Raw                                        int64 // of the objects before compression
	Quarantine                                 int64 // bytes in quarantine
}
