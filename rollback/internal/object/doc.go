// SPDX-License-Identifier: Apache-2.0

// Package object has the forms in which a checkpoint is kept: directories, lists of chunks, lists of what was skipped,
// and their digests. Every form is canonical: what a decoder accepts encodes to the same bytes again, so that two equal
// trees are one object and no byte can say anything that is not seen. Every field has a fixed width, or its length before
// it.
//
// # What it does not do
//
// It reads and writes no files, and it does not check hashes: whoever fetches an object does.
package object
