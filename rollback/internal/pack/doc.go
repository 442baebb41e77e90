// SPDX-License-Identifier: Apache-2.0

// Package pack keeps objects in files: one for all that a checkpoint added, immutable once it has its name. One create,
// one flush and one rename per checkpoint, however many files the tree has, is what makes it fast.
//
// A pack is a magic, records, a table, and a trailer; numbers are big-endian:
//
//	record   magic 4, type 1, codec 1, zero 2, raw length 4, stored length 4, SHA-256 of the raw bytes 32, data, CRC-32C 4
//	table    for each record, sorted: SHA-256 32, type 1, offset 8, stored length 4, raw length 4
//	trailer  records 8, offset of the table 8, SHA-256 of the table and of both numbers 32, magic 8
//
// The hash in the trailer is the pack's name, so one pack cannot stand in for another.
//
// # Damage
//
// Nothing is returned that was not hashed. Files are read with pread and not mapped: a file that got shorter, or an
// error of the disk, must be an error and not a signal. Lengths are checked before memory is taken for them.
//
// Records describe themselves. If the table is damaged, it is made again from them, and such a pack serves reads; but it
// vouches for nothing, so that a later checkpoint stores its objects again, and [Set.Check] reports it. An object that
// is found damaged does not count as present either.
package pack
