// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"fmt"

	"github.com/evoseal/containment/rollback/internal/object"
	"github.com/evoseal/containment/rollback/internal/pack"
)

// Verify reads and hashes everything that a checkpoint stands for; with a zero ID the whole store: every manifest, label,
// journal and pack, with the index of each pack compared with its records, and whatever no checkpoint needs as well. It changes
// nothing, works while others write checkpoints, and goes on after a fault: the error has all of them, as Unwrap()
// []error, most of them a [*CorruptError] with the file and offset, and one for each checkpoint that is concerned.
func (s *Store) Verify(ctx context.Context, id ID) error {
	leave, err := s.enter(ctx, false)
	if err != nil {
		return err
	}
	defer leave()
	var found faults
	v := &verifier{s: s, found: &found, seen: map[object.Hash]summary{}, objects: map[object.Key]struct{}{}}
	var list []listed
	if id.IsZero() {
		if list, err = s.list(true); err != nil {
			return err
		}
		s.verifyRest(&found)
	} else {
		m, err := s.manifest(id)
		if err != nil {
			return err
		}
		list = []listed{{id: id, m: &m}}
	}
	whole := func() ([]*pack.Fault, error) { return nil, nil }
	if id.IsZero() { // every record of every pack, whatever the checkpoints need: so the two need not wait for each other
		whole = s.checkPacks(ctx)
	}
	for _, l := range list {
		if l.err == nil {
			v.checkpoint(ctx, l.id, l.m)
		} else if !manifestGone(l.err) {
			found.add(l.err)
		}
	}
	damaged, err := whole()
	if !id.IsZero() {
		damaged, err = s.packs.Check(ctx, s.options.Workers, func(k object.Key) bool {
			_, ok := v.objects[k]
			return ok
		})
	}
	for _, f := range damaged {
		found.add(corrupt(id, f))
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		found.add(fmt.Errorf("rollback: verify was not finished: %w", err))
	}
	return found.err()
}

// checkPacks begins to check all packs. The function that it returns waits for the end.
func (s *Store) checkPacks(ctx context.Context) (wait func() ([]*pack.Fault, error)) {
	var damaged []*pack.Fault
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		damaged, err = s.packs.Check(ctx, s.options.Workers, nil)
	}()
	return func() ([]*pack.Fault, error) {
		<-done
		return damaged, err
	}
}

// verifyRest reads what belongs to no checkpoint.
func (s *Store) verifyRest(found *faults) {
	_, _, _, err := s.labels()
	found.add(err)
	data, err := s.dir.ReadFile(formatFile, formatLimit)
	if err == nil {
		_, err = s.parseFormat(data)
	}
	if err != nil {
		found.add(corrupt(ID{}, err))
	}
	_, err = s.journalIDs()
	found.add(err)
}

// verifier walks checkpoints. What two of them share is walked once.
type verifier struct {
	s       *Store
	found   *faults
	seen    map[object.Hash]summary // directories
	objects map[object.Key]struct{} // all that is needed
}

// summary is what a manifest says of a tree, computed again.
type summary struct {
	files, dirs, links int
	bytes              int64
	content            object.Hash
	broken             bool // a part is missing or damaged, so the sums are wrong
}

func (v *verifier) checkpoint(ctx context.Context, id ID, m *manifest) {
	if (m.Skipped != object.Hash{}) {
		v.objects[object.Key{Type: object.Skipped, Hash: m.Skipped}] = struct{}{}
		if _, err := v.s.skipped(m); err != nil {
			v.found.add(corrupt(id, err))
		}
	}
	sum := v.dir(ctx, id, &m.Root)
	want := summary{files: m.Files, dirs: m.Dirs, links: m.Links, bytes: m.Bytes, content: m.Root.Content}
	switch {
	case ctx.Err() != nil: // reported once, by Verify
	case sum.broken:
		v.found.add(&CorruptError{ID: id, Object: m.Root.Data.String(), Why: "something in this tree is missing or damaged"})
	case sum != want:
		v.found.add(&CorruptError{ID: id, Object: manifestPath(id), Why: "its counts or its content digest are not those of its tree"})
	}
}

// dir walks a directory and everything below.
func (v *verifier) dir(ctx context.Context, id ID, dir *object.Entry) (sum summary) {
	if sum, ok := v.seen[dir.Data.Hash]; ok {
		return sum
	}
	defer func() { v.seen[dir.Data.Hash] = sum }()
	if ctx.Err() != nil {
		return summary{broken: true}
	}
	v.objects[dir.Data] = struct{}{}
	entries, err := v.s.tree(dir.Data)
	if err != nil {
		v.found.add(corrupt(id, err))
		return summary{broken: true}
	}
	for i := range entries {
		v.entry(ctx, id, &entries[i], &sum)
	}
	sum.content = object.ContentDigest(entries)
	return sum
}

func (v *verifier) entry(ctx context.Context, id ID, e *object.Entry, sum *summary) {
	switch e.Kind {
	case object.Link:
		sum.links++
	case object.File:
		sum.files++
		sum.bytes += e.Size
		if err := v.file(e); err != nil {
			v.found.add(corrupt(id, err))
			sum.broken = true
		}
	case object.Dir:
		below := v.dir(ctx, id, e)
		if !below.broken && below.content != e.Content {
			v.found.add(&CorruptError{ID: id, Object: e.Data.String(), Why: fmt.Sprintf("%q has another content digest", e.Name)})
			below.broken = true
		}
		sum.files, sum.dirs, sum.links = sum.files+below.files, sum.dirs+below.dirs+1, sum.links+below.links
		sum.bytes, sum.broken = sum.bytes+below.bytes, sum.broken || below.broken
	}
}

// file looks whether the bytes are there; they are hashed later, in the order in which they are on the disk.
func (v *verifier) file(e *object.Entry) error {
	if e.Data.Type == object.Blob {
		return v.blob(e.Data, e.Size)
	}
	v.objects[e.Data] = struct{}{}
	chunks, err := v.s.chunks(e)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if c.Hole {
			continue
		}
		if err := v.blob(object.Key{Type: object.Blob, Hash: c.Hash}, c.Len); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) blob(k object.Key, size int64) error {
	v.objects[k] = struct{}{}
	switch n, ok := v.s.packs.Len(k); {
	case !ok:
		return corrupt(ID{}, &pack.Fault{Key: k, Err: pack.ErrMissing})
	case n != size:
		return &CorruptError{Object: k.String(), Why: fmt.Sprintf("it has %d bytes, its directory says %d", n, size)}
	}
	return nil
}

// chunks reads the list of a large file.
func (s *Store) chunks(e *object.Entry) ([]object.Chunk, error) {
	raw, err := s.object(e.Data)
	if err != nil {
		return nil, err
	}
	chunks, err := object.DecodeChunks(raw)
	if err != nil {
		return nil, &CorruptError{Object: e.Data.String(), Why: err.Error()}
	}
	var total int64
	for _, c := range chunks {
		total += c.Len
	}
	if total != e.Size {
		return nil, &CorruptError{Object: e.Data.String(), Why: fmt.Sprintf("%d bytes, its directory says %d", total, e.Size)}
	}
	return chunks, nil
}
