// SPDX-License-Identifier: Apache-2.0

// Package artifact takes the declared files out of the workspace of a run that is over.
//
// [Extract] lists the workspace through directory descriptors, beneath it only, and copies the regular files that the
// patterns select. The workspace is hostile: every link, FIFO, mount and count in it was chosen by the payload. What
// is not taken is a [executor.Refusal] with the reason and never hides the run's own result; an error means that the
// extraction as a whole failed: the request is wrong ([ErrRequest]), the destination cannot be written, or
// the kernel lacks openat2 (matches [errors.ErrUnsupported]; there is no weaker way). What was extracted before an error
// is returned beside it.
//
// [Send] and [Receive] are the two halves of Extract, where workspace and destination cannot be reached by one process. The
// receiver applies the request once more and believes nothing; a stream that breaks a rule is an [ErrStream].
//
// # What it does not do
//
// It does not judge what it returns: the files are as hostile as the payload. `.git` never comes back, under any of the
// names that git takes for it, but a directory that is laid out like a bare repository is only files here. Empty
// directories do not come back. Owners, times, set-id bits, extended attributes and holes that a file system does not
// report are not kept. Nothing is flushed to disk. A host program that is killed in the middle leaves a temporary file
// in the destination; see [RemoveTemps].
package artifact
