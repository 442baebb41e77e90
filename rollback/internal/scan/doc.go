// SPDX-License-Identifier: Apache-2.0

// Package scan captures a directory tree: every entry with its attributes, the bytes of every file hashed and handed to
// a sink, directories summed up from below. A stat cache of an earlier scan saves reading what has not changed.
//
// # Errors
//
// Whatever is wrong with the tree comes as an [*Error] that holds all failures found: [*fs.PathError] of the system,
// [*LimitError], [*UnstableError], [*SpecialError], [*SetIDError]. There is no partial result.
//
// # What it does not do
//
// It gives no view of one moment: a tree that is written meanwhile is walked again, and fails if that goes on. A write
// through a memory map into a page that is dirty already moves no time stamp until write-back, so a cache can miss it;
// [Options.Scrub] and a scan without a cache do not. It reads nothing named .git, and nothing on other file systems.
package scan
