// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// change is one difference between what is there and what must be.
type change struct {
	path     string
	op       rollback.Op
	old, new *entry // nil: nothing
}

// journal of a restore that is under way.
type pending struct {
	To, Safety rollback.ID
	Tree       string
	Position   int // for a defect
}

// entries returns what a checkpoint holds; nothing for the zero ID.
func (p *plain) entries(id rollback.ID) (map[string]entry, error) {
	m, err := p.manifest(id)
	if err != nil {
		return nil, err
	}
	lists, err := p.load(m)
	return flat(lists), err
}

// compare lists what has to change, parents first.
func (p *plain) compare(have, want map[string]entry) (list []change) {
	for name, w := range want {
		h, there := have[name]
		c := change{path: name, op: rollback.Create, new: &w}
		if there {
			if c.old = &h; same(h, w) {
				if p.d != restoresAll || w.kind() == unix.S_IFDIR {
					continue
				}
			}
			switch {
			case h.kind() != w.kind():
				c.op = rollback.Retype
			case w.kind() != unix.S_IFDIR && (h.Data != w.Data || !bytes.Equal(h.Target, w.Target)):
				c.op = rollback.Replace
			default:
				c.op = rollback.Attributes
			}
		}
		list = append(list, c)
	}
	list = append(list, p.partners(list, have, want)...)
	for name, h := range have {
		if _, there := want[name]; !there {
			list = append(list, change{path: name, op: rollback.Remove, old: &h})
		}
	}
	slices.SortFunc(list, func(a, b change) int { return bytes.Compare([]byte(a.path), []byte(b.path)) })
	return list
}

// partners: if one name of a hard link changes, all are made anew.
func (p *plain) partners(list []change, have, want map[string]entry) (more []change) {
	changed, known := map[string]bool{}, map[string]bool{}
	for _, c := range list {
		changed[string(c.new.Group)], known[c.path] = true, true
	}
	for name, w := range want {
		if len(w.Group) > 0 && changed[string(w.Group)] && !known[name] {
			h := have[name]
			more = append(more, change{path: name, op: rollback.Attributes, old: &h, new: &w})
		}
	}
	return more
}

// same compares all that is captured; of a directory only what is its own.
func same(a, b entry) bool {
	if a.kind() == unix.S_IFDIR {
		a.Data, b.Data = "", ""
	}
	return a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID && a.Sec == b.Sec && a.Nsec == b.Nsec &&
		a.Data == b.Data &&
		bytes.Equal(a.Target, b.Target) && bytes.Equal(a.Group, b.Group) && maps.EqualFunc(a.Xattrs, b.Xattrs, bytes.Equal)
}

func report(list []change) (out []rollback.Change) {
	for _, c := range list {
		out = append(out, rollback.Change{Path: c.path, Op: c.op})
	}
	return out
}

func (p *plain) Plan(ctx context.Context, id rollback.ID, tree string) (*rollback.Restoration, error) {
	leave, err := p.enter(ctx, tree, id)
	if err != nil {
		return nil, err
	}
	defer leave()
	if p.d == planWrites {
		_ = os.WriteFile(tree+"/.plan", nil, 0o600)
	}
	list, _, _, err := p.prepare(ctx, id, tree)
	if err != nil {
		return nil, err
	}
	return &rollback.Restoration{To: id, Tree: tree, Changes: report(list)}, nil
}

// prepare scans the tree and compares it with the checkpoint.
func (p *plain) prepare(ctx context.Context, id rollback.ID, tree string) ([]change, manifest, *scanner, error) {
	if id.IsZero() {
		return nil, manifest{}, nil, fmt.Errorf("%w: zero", rollback.ErrNotFound)
	}
	m, err := p.manifest(id)
	if p.d == restoresAnother && errors.Is(err, rollback.ErrNotFound) {
		if all, e := p.all(); e == nil && len(all) > 0 {
			m, err = all[0], nil
		}
	}
	if err != nil {
		return nil, m, nil, err
	}
	want, err := p.load(m)
	if err != nil {
		return nil, m, nil, err
	}
	exclude := m.Exclude
	if p.d == todaysExcludes {
		exclude = p.o.Exclude
	}
	sc := p.scanner(ctx, tree, exclude)
	sc.safety = true
	root, err := sc.scan()
	if err != nil {
		return nil, m, nil, err
	}
	all, have := flat(want), flat(sc.lists)
	all["."], have["."] = m.Root, root
	list := p.compare(have, all)
	for _, e := range all { // everything is read before anything is written
		if e.kind() == unix.S_IFREG {
			if _, err := p.get("blobs", e.Data); err != nil {
				return nil, m, nil, err
			}
		}
	}
	for _, c := range list {
		if err := p.blocked(c, sc); err != nil {
			return nil, m, nil, err
		}
	}
	return list, m, sc, nil
}

// blocked: something foreign stands at a name that is needed.
func (p *plain) blocked(c change, sc *scanner) error {
	if c.new == nil || p.o.Foreign == rollback.ForeignQuarantine || p.d == overwritesForeign {
		return nil
	}
	for name, why := range sc.foreign {
		if name == c.path || c.new.kind() != unix.S_IFDIR && below(name, c.path) {
			return fmt.Errorf("%w: %s: %q", rollback.ErrBlocked, why, name)
		}
	}
	return nil
}

func (p *plain) Restore(ctx context.Context, id rollback.ID, tree string) (*rollback.Restoration, error) {
	if id.IsZero() && p.d != restoresAnother {
		return nil, fmt.Errorf("%w: zero", rollback.ErrNotFound)
	}
	leave, err := p.enter(ctx, tree, id)
	if err != nil {
		return nil, err
	}
	defer leave()
	if _, err := os.Lstat(p.journal(tree)); err == nil {
		return nil, rollback.ErrPending
	}
	return p.restore(ctx, id, rollback.ID{}, tree)
}

// restore brings the tree to the checkpoint. With a safety checkpoint it goes on where a dead process stopped.
func (p *plain) restore(ctx context.Context, id, safety rollback.ID, tree string) (*rollback.Restoration, error) {
	r := &rollback.Restoration{Tree: tree, To: id, Safety: safety, Recovered: !safety.IsZero()}
	begin := time.Now()
	list, m, sc, err := p.prepare(ctx, id, tree)
	if err != nil {
		return nil, err
	}
	r.Changes = report(list)
	if len(list) > 0 && safety.IsZero() && p.d != dropsSafety {
		c, err := p.take(ctx, tree, rollback.Meta{}, rollback.Safety, m.Exclude)
		if err != nil {
			return nil, err
		}
		r.Safety = c.ID
	}
	if p.d == unlinksChanged { // as long as the rest, so that as many edits fall into it, however fast the machine is
		time.Sleep(max(2*time.Millisecond, time.Since(begin)))
	}
	ctx = context.WithoutCancel(ctx)
	a := applier{plain: p, ctx: ctx, r: r, sc: sc, m: m, tree: tree}
	if r.Recovered {
		if a.saved, err = p.entries(safety); err != nil {
			return nil, err
		}
	}
	if err := a.stage(list); err != nil {
		return nil, full(errors.Join(err, a.unstage()))
	}
	if p.d != noJournal && len(list) > 0 {
		text, err := json.Marshal(pending{To: id, Safety: r.Safety, Tree: tree})
		if err == nil {
			err = p.write(p.journal(tree), text)
		}
		if err != nil {
			return nil, errors.Join(err, a.unstage())
		}
	}
	if err := a.apply(list); err != nil {
		return r, &rollback.RestoreError{Phase: "apply", Committed: p.d != noJournal, Err: err}
	}
	return r, p.finish(a, r, m)
}

// finish looks whether the tree is what it should be.
func (p *plain) finish(a applier, r *rollback.Restoration, m manifest) error {
	after := p.scanner(a.ctx, a.tree, m.Exclude)
	after.safety = true
	if _, err := after.scan(); err != nil {
		return &rollback.RestoreError{Phase: "verify", Committed: true, Err: err}
	}
	r.Digest = after.c.Digest
	incomplete := len(r.Kept) > 0
	if r.Digest != m.Checkpoint.Digest && !incomplete && p.o.MTime == rollback.MTimeExact && p.d == "" {
		return &rollback.RestoreError{Phase: "verify", Committed: true, Err: errors.New("the tree is not the checkpoint's")}
	}
	if a.staging == "" && !r.Recovered {
		return nil
	}
	// The note tells the new time before the journal goes, so that whoever goes on from here sets it.
	if err := errors.Join(a.noteRoot(m.Root), os.RemoveAll(p.journal(a.tree)), removeAll(a.staging)); err != nil {
		return err
	}
	if !r.Recovered { // else there is more to remove, by which the time moves
		if err := p.resetRoot(a.tree); err != nil {
			return err
		}
	}
	if incomplete {
		return fmt.Errorf("%w: %v", rollback.ErrIncomplete, r.Kept)
	}
	return nil
}

func (p *plain) Recover(ctx context.Context) (done []rollback.Restoration, err error) {
	trees, err := p.registered()
	if err != nil {
		return nil, err
	}
	for _, t := range trees {
		if info, err := os.Lstat(t.Path); err != nil || sysStat(info).Ino != t.Ino {
			continue
		}
		leave, err := p.enter(ctx, t.Path, rollback.ID{})
		if err != nil {
			return done, err
		}
		r, err := p.recover(ctx, t.Path)
		leave()
		if r != nil {
			done = append(done, *r)
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (p *plain) recover(ctx context.Context, tree string) (*rollback.Restoration, error) {
	staging, err := filepath.Glob(tree + "/.rollback-*")
	if err != nil {
		return nil, err
	}
	var r *rollback.Restoration
	text, err := os.ReadFile(p.journal(tree))
	if err == nil {
		var j pending
		if err := json.Unmarshal(text[1:], &j); err != nil {
			if err := json.Unmarshal(text, &j); err != nil {
				return nil, &rollback.CorruptError{Object: p.journal(tree), Why: err.Error()}
			}
		}
		if p.d == redoByPosition {
			return nil, os.Remove(p.journal(tree))
		}
		if r, err = p.restore(ctx, j.To, j.Safety, tree); err != nil {
			return r, err
		}
	}
	for _, dir := range staging {
		// What was moved aside and not yet judged may be saved nowhere else.
		if aside, _ := filepath.Glob(dir + "/aside-*"); len(aside) > 0 {
			to := fmt.Sprintf("%s/quarantine/%s", p.dir, filepath.Base(dir))
			if err := os.Rename(dir, to); err != nil {
				return nil, err
			}
			if r == nil {
				r = &rollback.Restoration{Tree: tree, Recovered: true}
			}
			r.Quarantined = append(r.Quarantined, rollback.Quarantined{Path: ".", Where: to, Why: "left by a dead process"})
		} else if err := removeAll(dir); err != nil {
			return nil, err
		}
	}
	return r, p.resetRoot(tree)
}

// resetRoot gives the root the time that the note tells; without a note it has it.
func (p *plain) resetRoot(tree string) error {
	text, err := os.ReadFile(p.noteOf(tree))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var e entry
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		return &rollback.CorruptError{Object: p.noteOf(tree), Why: err.Error()}
	}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, tree, []unix.Timespec{{Nsec: unix.UTIME_OMIT},
		{Sec: e.Sec, Nsec: e.Nsec}}, 0); err != nil {
		return err
	}
	return os.Remove(p.noteOf(tree))
}

// deepest sorts directories so that what is in one comes before it.
func deepest(names []string) []string {
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	return names
}

func parent(name string) string { return path.Dir(name) }
