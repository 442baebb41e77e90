// SPDX-License-Identifier: Apache-2.0

// Package journal keeps what must not be forgotten: an append-only, hash-chained file that one process writes and a
// person can read. Package runaway counts in it; a decision log has the same needs.
//
//	cfg := journal.Config{Dir: dir, Name: "run-7", Kind: "runaway", ID: "run-7"}
//	j, err := journal.Create(cfg, header)        // a new one is asked for explicitly …
//	j, err := journal.Open(cfg)                  // … and a known one never made anew
//	for rec, err := range j.Records() { … }      // verified a second time while it is read
//	seq, err := j.Append(payload, true)          // on the disk when it returns
//	err = j.Rotate(j.Head(), snapshot)           // one file again, the numbers go on
//
// # The file
//
// Name.journal holds one JSON object a line. Each has its number, the SHA-256 of the line before (with its line end, so
// that `sed -n 3p run-7.journal | sha256sum` prints what line 4 calls "prev"), the caller's payload, and a CRC-32C of
// everything before the checksum:
//
//	{"n":0,"prev":"0000…","header":{"format":1,"kind":"runaway","id":"run-7","data":{…}},"crc":"b1a7f2c0"}
//	{"n":1,"prev":"9c1e…","data":{"begin":1},"crc":"02f6d0a1"}
//	{"n":2,"prev":"77aa…","cut":37,"crc":"5d0c11e9"}
//
// Name.created is made first and never removed or renamed. The writer locks it with flock(2), which the kernel drops
// when the process dies; as long as the file is empty, the journal was never complete. So a journal that has vanished is
// told from one that never existed: the first is [ErrCorrupt], the second [ErrNotExist].
//
// # What survives what
//
// Append writes before it returns, so the record survives the death of the process. A durable Append, or Sync, also
// survives that of the machine, with one fdatasync for everything before it. What Open has read is durable, too. A write or sync
// that failed is final: the kernel may have dropped the pages and report success the next time. The journal is broken
// from then on; the next Open finds the record or cuts it.
//
// # What Open repairs
//
// Only bytes behind the last line end, fewer than one record may have: a write that was under way. They are overwritten by
// a record that says how many were dropped ([Record.Cut]), before anything else happens. The note is therefore as durable
// as the repair, and a caller that counts charges each such record as if it were the lost one. Everything else is
// [ErrCorrupt]: a line that has its end and does not verify, wherever it stands; a whole record with a wrong byte as its
// end; a number out of order; a missing or damaged header. A power failure on a file system that lets a file grow before
// its data is written can leave such a line too. Nobody can tell that from an edit, so a person has to look.
//
// # Errors
//
// Every error is an [*Error] that names the file, the rule and the way out, and matches one of the sentinels:
// [ErrNotExist], [ErrExist], [ErrLocked], [ErrCorrupt], [ErrUntrusted], [ErrTooLarge], [ErrFull], [ErrInvalid],
// [ErrMoved], [ErrIO], [ErrBroken], [ErrClosed]. On systems without flock(2) and openat(2) everything fails with an error that
// matches [errors.ErrUnsupported].
//
// # What it does not do
//
// It does not protect the file from processes with the same uid, or from root. The chain shows an edit or a gap, not a cut
// at the end of a line by somebody who may write the file, nor an older copy put back: keep [Journal.Head] elsewhere for
// that. It looks at the directory, not at those above it. It needs a local file system. It keeps no time and understands
// no payload. It does not repair a corrupt file.
package journal
