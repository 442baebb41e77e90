// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"log/slog"
	"time"
)

// Options of a [Store]. Nil or zero gives the defaults, which are the safest.
type Options struct {
	// Exclude are doublestar patterns relative to the root of a tree; what matches is neither captured nor touched.
	// A pattern without a slash holds at any depth. Nil: [DefaultExclude]. An empty, non-nil list excludes nothing.
	Exclude []string

	// Roots are further directories that may be restored into: each must be empty when it is first used.
	Roots []string

	Limits Limits
	Sync   SyncMode
	Codec  Codec
	MTime  MTimePolicy

	// Foreign says what becomes of things that a checkpoint does not know where a restore needs their place.
	Foreign ForeignPolicy

	// Owner captures and restores uid and gid; root only. Without it a file that root brings back belongs to whom the one
	// belongs that stands there, or the directory: set it for a tree in which files have other owners than the directory
	// that they are in, or a file that its user could remove but not read comes back readable for him. Files with set-id
	// bits always keep their owner.
	Owner bool

	// Privileged accepts files with set-id bits in a user checkpoint. Without it they are ErrUnsupported.
	Privileged bool

	// Xattrs captures extended attributes of the namespace "user." and POSIX ACLs. Without it a rewritten file loses them.
	Xattrs bool

	// Special says what a FIFO, socket or device in the tree means.
	Special SpecialPolicy

	// Workers read and write files at the same time. 0: the smaller of 8 and GOMAXPROCS.
	Workers int

	// Scrub re-reads one in Scrub of the files that look unchanged, in turn, at every checkpoint: a store through a memory
	// map into a page that is dirty already moves no timestamp until write-back. 0: 256. Negative is refused.
	Scrub int

	// Key, if set, seals manifests, journals and caches with HMAC-SHA-256: then somebody who can write the store cannot
	// forge a checkpoint. A store that was made with a key opens only with it. Take 32 random bytes.
	Key []byte

	// Logger gets what was swept, skipped and finished. Nil discards.
	Logger *slog.Logger
}

// DefaultExclude are caches that a tool builds again, and keeps right by content or by time and size: taking them back
// would cost much and save nothing. Nothing keeps a hostile program from forging them: see "What it does not do".
func DefaultExclude() []string {
	return []string{"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".gocache", "node_modules/.cache"}
}

// Limits fail loudly: more is [ErrTooLarge] naming the path, never a silent skip. Zero fields take the default.
type Limits struct {
	Files    int64 // entries of a tree. 0: 1,000,000
	Bytes    int64 // sum of the files' sizes. 0: 32 GiB
	FileSize int64 // of one file. 0: 2 GiB
	Depth    int   // directories below the root. 0: 512
}

func (l Limits) withDefaults() Limits {
	if l.Files == 0 {
		l.Files = 1_000_000
	}
	if l.Bytes == 0 {
		l.Bytes = 32 << 30
	}
	if l.FileSize == 0 {
		l.FileSize = 2 << 30
	}
	if l.Depth == 0 {
		l.Depth = 512
	}
	return l
}

// SyncMode says what a checkpoint and a restore survive.
type SyncMode uint8

const (
	// SyncDurable: when a call returns its result survives power loss.
	SyncDurable SyncMode = iota
	// SyncProcess: it survives the death of the process only; for tests and scratch trees.
	SyncProcess
)

// Codec compresses what is stored.
type Codec uint8

const (
	// CodecS2 compresses with S2 where it saves more than 5 %.
	CodecS2 Codec = iota
	// CodecNone stores bytes as they are.
	CodecNone
)

// MTimePolicy says which modification time a rewritten file gets.
type MTimePolicy uint8

const (
	// MTimeExact restores the captured time. A build tool that compares times can then take an output of the bad edit,
	// if it was excluded from the checkpoint, for newer than its source.
	MTimeExact MTimePolicy = iota
	// MTimeTouch gives rewritten files the present time, and leaves the times of files with the right bytes as they are:
	// an older time is what the trap is made of. The digest of the tree then differs from the checkpoint's in Tree; trees
	// are compared by everything but the times of files.
	MTimeTouch
)

// ForeignPolicy is for what a checkpoint does not know: .git, excluded names, special files, mounts.
type ForeignPolicy uint8

const (
	// ForeignKeep leaves it and refuses ([ErrBlocked]) or reports ([ErrIncomplete]) where it is in the way.
	ForeignKeep ForeignPolicy = iota
	// ForeignQuarantine moves it to the quarantine where it is in the way, and with it what cannot be captured and what
	// looks like the staging of another store. Mounts are never moved.
	ForeignQuarantine
)

// SpecialPolicy is for FIFOs, sockets and devices, which are never opened and no part of a checkpoint.
type SpecialPolicy uint8

const (
	// SpecialRefuse: a tree that holds one is ErrUnsupported, with its path.
	SpecialRefuse SpecialPolicy = iota
	// SpecialSkip lists them in Checkpoint.Skipped.
	SpecialSkip
)

// Retention says what [Store.Prune] keeps. Pinned checkpoints, the newest of each tree, their ancestors' data as far as it
// is shared, and those that a journal names are kept always. A zero field decides nothing: the zero Retention deletes no
// checkpoint, only what nothing refers to.
type Retention struct {
	User, Safety int           // keep the newest N of each kind, of each tree
	MaxAge       time.Duration // delete what is older
	MaxBytes     int64         // delete the oldest until the packs hold no more; bytes
	RepackBytes  int64         // most that one call rewrites. 0: 256 MiB
}
