// SPDX-License-Identifier: Apache-2.0

package scratch

// Owner is a user and a group of the host, other than the caller.
type Owner struct{ UID, GID int }

// Options say what a copy contains and who may change it. The zero value is invalid: both limits must be given.
//
// Paths are slash-separated, relative to the workspace, without "..", and need not exist: nothing is created for a path
// that does not. Where several rules name one path, Omit wins over Sealed and Covered, and these over ReadOnly.
type Options struct {
	// Owner gets what the run may change, and is the user and the group that the run has. Nil means that the run has the
	// caller's own, and then nothing can be sealed or read-only: an owner changes modes back.
	Owner *Owner

	// OmitNames are base names that are left out at any depth, byte for byte: on a file system that tells ".GIT" from
	// ".git" these are two files, and only the second is git's.
	OmitNames []string

	// Omit lists paths that are left out with everything below.
	Omit []string

	// Sealed lists paths that become an empty file or directory of the caller without any permission bit: the run can
	// neither read, write, replace nor remove it. It needs Owner.
	Sealed []string

	// Covered lists paths that become the same, and that protects nothing by itself: it is for a caller who mounts something
	// on them, in the view of the run.
	Covered []string

	// ReadOnly lists paths that stay the caller's, without write bits, with everything below; the run's group may read
	// and execute what the owner of the original may. The directories above are the caller's too, sticky and writable
	// for the run's group, so that the run can add entries but not rename or remove the protected one. "." protects
	// everything. It needs Owner. A path that is, or leads through, a symbolic link is an error: the protection would
	// hold for the link and not for what it names.
	ReadOnly []string

	// Overlay, if not empty, is a directory whose regular files take the place of what the source has under their paths, and
	// whose directories are joined with the source's. The rules above apply as if the source had held them. It is looked
	// through before anything is copied, and must hold nothing but directories and regular files.
	Overlay string

	// MaxBytes bounds the data that is copied, holes not counted; MaxFiles bounds files, directories and links together.
	// Both must be positive.
	MaxBytes, MaxFiles int64
}

// Stats says what was copied. The top directory is not counted.
type Stats struct {
	Files, Dirs, Links int64
	Bytes              int64 // sum of the files' apparent sizes
	Allocated          int64 // bytes of storage that the copied files account for; shared blocks count like others
}

// UnpackOptions say who gets a tree and how large it may be. MaxBytes bounds the apparent sizes of all files together,
// MaxFiles the number of entries; both must be positive.
type UnpackOptions struct {
	Owner              Owner
	MaxBytes, MaxFiles int64
}
