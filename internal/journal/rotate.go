// SPDX-License-Identifier: Apache-2.0

package journal

// Rotate replaces the file by one that begins with snapshot, a JSON object of at most MaxHeader bytes in which the caller
// says all it needs of the records up to covers. ErrMoved if covers is not the head any more. A crash leaves the old file
// or the new one; numbers and chain go on. It is durable when it returns.
//
// If the new file cannot be written, the old one goes on (ErrIO). If it cannot be put in its place for certain, the
// journal is broken.
func (j *Journal) Rotate(covers Head, snapshot []byte) error {
	const op = "rotate"
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	if covers != j.head {
		return j.refuse(op, ErrMoved, "records were appended since", "take the snapshot again")
	}
	h := j.header
	h.Seq, h.Snapshot = covers.Seq+1, append([]byte{}, snapshot...) // not nil: none at all is refused
	line, err := j.firstLine(op, h, covers.Hash)
	if err != nil {
		return err
	}
	// Without this, a writer whose files somebody removed would put its journal over that of the next run.
	if err := j.inPlace(op); err != nil {
		return err
	}
	next, err := j.files.begin(j.cfg, line)
	if err != nil {
		return wrap(op, j.cfg.path(suffixNew), "the new file cannot be written", err)
	}
	old := j.files.journal
	j.files.journal = next
	if err := j.files.fs.Rename(j.cfg.Name+suffixNew, j.cfg.Name+suffixJournal); err != nil {
		return j.fail(op, "the new file cannot be put in its place", joinClose(err, old))
	}
	j.header, j.head, j.size, j.dirty = h, headAt(h.Seq, line), int64(len(line)), false
	if err := j.files.fs.Sync(); err != nil {
		return j.fail(op, "the directory cannot be synced", joinClose(err, old))
	}
	// The old file has no name any more; if it cannot be closed, a descriptor is lost and nothing else.
	_ = old.Close()
	return nil
}
