// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
)

// sweepStaging removes what a restore left that was not committed: the tree is as it was. The staging of another store,
// or of another tree, is reported and stays.
func (s *Store) sweepStaging(ctx context.Context, t *target) (*Restoration, error) {
	names, err := listNames(t.fd)
	if err != nil {
		return nil, fmt.Errorf("rollback: %s: %w", t.path, err)
	}
	var bad faults
	out := &Restoration{Tree: t.path}
	for _, name := range names {
		if !strings.HasPrefix(name, stagingPrefix) {
			continue
		}
		switch {
		case strings.HasPrefix(name, keptPrefix):
			out.Kept = append(out.Kept, Foreign{Path: name, Why: "holds what could not be moved to quarantine"})
		case !s.isOurs(t, name):
			out.Kept = append(out.Kept, Foreign{Path: name, Why: otherStaging})
		default:
			_, sec, nsec, _ := parseStaging(name)
			r := s.newRestorer(ID{}, manifest{}, t)
			r.name, r.out = "recover", out
			r.journal = &journal{Staging: name}
			bad.add(r.sweep(ctx, sec, nsec))
		}
	}
	r := s.newRestorer(ID{}, manifest{}, t)
	bad.add(r.closeRoot())
	if len(out.Kept)+len(out.Quarantined) == 0 {
		out = nil
	}
	return out, bad.err()
}

// isOurs reports whether a name at the top is staging of this store for this tree. Staging is a directory: whoever knows
// the name and puts something else there gets it treated as theirs.
func (s *Store) isOurs(t *target, name string) bool {
	owner, _, _, ok := parseStaging(name)
	if !ok || owner != stagingTag(s.id, t.key) {
		return false
	}
	st, err := fsys.Lstat(t.fd, name)
	return err != nil || st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// sweep removes one staging directory. Before the commit it holds what a restore wrote, whole or in part. If
// something was moved into it after all, because its journal went another way than by a restore, then only what the
// store has is deleted. closeRoot then gives the root back the time that making the directory changed.
func (r *restorer) sweep(ctx context.Context, sec int64, nsec uint32) error {
	if err := r.openStaging(); err != nil {
		return fmt.Errorf("rollback: %s: %w", r.journal.Staging, err)
	}
	defer r.closeStaging()
	names, err := listNames(r.staging)
	if err != nil {
		return fmt.Errorf("rollback: %s: %w", r.journal.Staging, err)
	}
	used, err := r.stagingUsed()
	if err != nil {
		return fmt.Errorf("rollback: %s: %w", r.journal.Staging, err)
	}
	var strange []stranger
	for _, name := range names {
		if !r.ours(name, used) {
			strange = append(strange, stranger{name: name, path: join(r.journal.Staging, name), why: "found in staging"})
			continue
		}
		r.step("sweep")
		if err := unix.Unlinkat(r.staging, name, 0); err != nil {
			return fmt.Errorf("rollback: %s/%s: %w", r.journal.Staging, name, err)
		}
	}
	if len(strange) > 0 {
		if err := r.quarantine(ctx, strange); err != nil {
			return err
		}
	}
	st, err := fsys.Fstat(r.target.fd)
	if err != nil {
		return err
	}
	if _, err := r.s.dir.Stat(notePath(r.target.key)); err != nil { // one that is there knows the mode before
		err := r.noteRoot(&object.Entry{Mode: uint32(st.Mode) & 0o7777, Sec: sec, Nsec: nsec})
		if err != nil {
			return fmt.Errorf("rollback: %s: %w", r.journal.Staging, err)
		}
	}
	if err := r.dropStaging(); err != nil {
		return fmt.Errorf("rollback: %s: %w", r.journal.Staging, err)
	}
	r.step("swept")
	return nil
}

// ours reports whether a name in staging can be unlinked.
func (r *restorer) ours(name string, used bool) bool {
	st, err := fsys.Lstat(r.staging, name)
	kind := st.Mode & unix.S_IFMT
	switch {
	case err != nil || kind != unix.S_IFREG && kind != unix.S_IFLNK:
		return false
	case name == probeName:
		return true
	case !used:
		_, err := strconv.ParseUint(name, 10, 32)
		return err == nil
	case kind == unix.S_IFLNK:
		return false // a target is kept in no object of its own
	}
	k, err := r.look(name)
	return err == nil && r.s.packs.Has(k.Data)
}
