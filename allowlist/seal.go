// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// Manifest is what Seal saw. Keep it in the memory of the parent; whoever stores it elsewhere must authenticate it with
// a key that the variant cannot read.
type Manifest struct {
	policy  *Policy
	pdigest string
	full    bool
	hashed  bool // records have digests
	records map[string]record
}

// record is what is remembered of one name. Times and inode numbers are no part of what is sealed: they prove nothing.
type record struct {
	kind     kind
	perm     uint32
	uid, gid uint32
	nlink    uint64 // not of directories, where it counts what lies in them
	size     int64  // not of directories
	digest   Digest // of the content, or of where a link leads
	// fast is instead of the digest where Apply compares two moments of its own. Beside a digest it is no part of what is
	// compared, and says for Recheck whether the content has to be read again.
	fast ident
	read int64 // when reading the content for the digest began, in nanoseconds of the wall clock; no part either
}

// compared returns what two moments are compared by.
func (r record) compared(hashed bool) record {
	if r.read = 0; hashed {
		r.fast = ident{}
	}
	return r
}

// ident changes with every write that does not forge the clock.
type ident struct {
	dev, ino     uint64
	mtime, ctime int64
}

func identOf(m meta) ident { return ident{m.dev, m.ino, m.mtime, m.ctime} }

// racy is how long after a change a file's times may not show another one, in nanoseconds: the kernel's clock for them
// has steps of up to 10 ms (CONFIG_HZ=100), and some file systems keep 2 s.
const racy = 2_100_000_000

// Seal records every protected name that is present, with digests. Absence needs no record: a protected name that
// appears later is tampering. Of git directories it records what has effects (configuration, hooks, refs, and every
// link), not objects, logs or the index. It fails if any of it cannot be read.
func (p *Policy) Seal(t *Tree) (*Manifest, error) { return p.seal(t, false) }

// SealFull records every name of the tree, for VerifyWithin. Below .git it leaves out what git writes all the time:
// packed and loose objects, logs, the index.
func (p *Policy) SealFull(t *Tree) (*Manifest, error) { return p.seal(t, true) }

func (p *Policy) seal(t *Tree, full bool) (*Manifest, error) {
	release, err := t.use()
	if err != nil {
		return nil, err
	}
	defer release()
	tp, err := t.policy(p)
	if err != nil {
		return nil, fmt.Errorf("allowlist: seal: %w", err)
	}
	m, err := t.record(tp, recording{full: full, hash: true})
	if err != nil {
		return nil, fmt.Errorf("allowlist: seal: %w", err)
	}
	m.policy, m.pdigest = p, p.Digest()
	return m, nil
}

// Len returns the number of names that are recorded.
func (m *Manifest) Len() int { return len(m.records) }

// Files yields every regular file that is recorded with the digest of its content, sorted by path.
func (m *Manifest) Files() iter.Seq2[string, Digest] {
	return func(yield func(string, Digest) bool) {
		for _, path := range slices.Sorted(maps.Keys(m.records)) {
			if r := m.records[path]; r.kind == kindFile && !yield(path, r.digest) {
				return
			}
		}
	}
}

// Digest identifies the manifest: "sha256:" and hexadecimal digits, over the sorted records and the digest of the
// policy.
func (m *Manifest) Digest() string {
	h := newHasher("manifest v1")
	h.field([]byte(m.pdigest))
	h.number(uint64(len(m.records)))
	for _, path := range slices.Sorted(maps.Keys(m.records)) {
		r := m.records[path]
		h.field([]byte(path))
		h.field([]byte{byte(r.kind)})
		for _, n := range []uint64{uint64(r.perm), uint64(r.uid), uint64(r.gid), r.nlink, uint64(r.size)} {
			h.number(n)
		}
		h.field(r.digest[:])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// recording says what a walk records.
type recording struct {
	full bool            // every name, not only the protected ones
	hash bool            // digests of contents, not only what the kernel says about them
	skip map[string]bool // paths of staged files
	many int             // about how many records there will be
	// known, if not nil, is a manifest of the same tree whose digests stand for files that have not changed since.
	known *Manifest
}

// record walks the tree.
func (t *Tree) record(tp *treePolicy, r recording) (*Manifest, error) {
	w := newWalker(t, tp, r)
	if err := w.run(); err != nil {
		return nil, err
	}
	return &Manifest{full: r.full, hashed: r.hash, records: w.records}, nil
}

// take makes the record of one name, which has this path and is of this kind if the directory says so.
func (r recording) take(d dir, name, path string, listed kind) (record, error) {
	if listed == kindFile && r.hash && r.known == nil {
		rec, err := r.hashed(d, name)
		if _, refused := asRefusal(err); !refused {
			return rec, err
		} // else it is none (any more): it is recorded as what it is
	}
	m, err := d.lstat(name)
	if err != nil {
		return record{}, err
	}
	rec := record{kind: m.kind, perm: m.perm, uid: m.uid, gid: m.gid}
	if m.kind == kindDir {
		return rec, nil
	}
	rec.nlink, rec.size = m.nlink, m.size
	if !r.hash {
		rec.fast = identOf(m)
		return rec, nil
	}
	switch m.kind {
	case kindLink:
		target, err := d.readlink(name)
		rec.digest = Sum([]byte(target))
		return rec, err
	case kindFile:
		if rec.fast = identOf(m); r.known.vouches(path, &rec) {
			return rec, nil
		}
		return r.hashed(d, name)
	}
	return rec, nil
}

// hashed reads the file through the handle whose metadata it records, so that both are of one file.
func (r recording) hashed(d dir, name string) (record, error) {
	began := time.Now().UnixNano()
	sum, m, err := d.digest(name)
	return record{kind: m.kind, perm: m.perm, uid: m.uid, gid: m.gid, nlink: m.nlink, size: m.size, digest: sum,
		fast: identOf(m), read: began}, err
}

// vouches fills in the digest of a file that is the same, byte for byte, as when the manifest was made, as far as the
// kernel's times can say so. A file that had just changed then could have changed once more without a trace.
func (m *Manifest) vouches(path string, rec *record) bool {
	if m == nil {
		return false
	}
	was, ok := m.records[path]
	if !ok || was.kind != kindFile || was.fast != rec.fast || was.size != rec.size || was.fast.ctime == 0 ||
		was.fast.ctime > was.read-racy || was.fast.mtime > was.read-racy {
		return false
	}
	rec.digest, rec.read = was.digest, was.read
	return true
}
