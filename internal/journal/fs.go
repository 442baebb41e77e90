// SPDX-License-Identifier: Apache-2.0

package journal

// FS is one directory. It exists so that tests can let each call fail, or end the process between two of them.
type FS interface {
	// Open opens a file that is a regular one, belongs to the caller, has no other name and no permissions for others.
	Open(name string, how OpenMode) (File, error)
	Rename(from, to string) error
	// Sync makes creations and renames durable.
	Sync() error
	Close() error
}

// OpenMode says what a file is opened for.
type OpenMode int

// The ways to open a file.
const (
	ReadOnly OpenMode = iota
	ReadWrite
	CreateOrOpen // ReadWrite, and made with mode 0600 if it is missing
)

// File is one open file.
type File interface {
	ReadAt(p []byte, off int64) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	Truncate(size int64) error
	// Stat returns the size, and whether the file still has a name in the directory.
	Stat() (size int64, named bool, err error)
	// Sync makes the data durable: fdatasync where there is one.
	Sync() error
	// Lock takes the exclusive lock without waiting; ErrLocked if another open file has it. Close drops it.
	Lock() error
	Close() error
}
