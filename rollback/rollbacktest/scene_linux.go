// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/evoseal/containment/rollback"
)

// scene is where a case takes place. Its methods end the case when what they do fails.
type scene struct {
	work // on the tree
	ctx  context.Context
	id   string
	open Open
	dir  string // of the case; holds the tree, the store and what lies outside of both
	tree string
	opt  rollback.Options // for the next subject
	subs []Subject
}

// scened turns a function on a scene into a check.
func scened(id string, f func(*scene)) func(context.Context, Open, string) error {
	return func(ctx context.Context, open Open, dir string) error {
		return watched(ctx, id, func(ctx context.Context) error {
			// Case and store know the same name for the tree: a temporary directory may be reached through a link.
			dir, err := filepath.EvalSymlinks(dir)
			if err != nil {
				return inconclusive(id, err)
			}
			s := &scene{ctx: ctx, id: id, open: open, dir: dir, tree: dir + "/tree"}
			s.root, s.opt.Sync = s.tree, rollback.SyncProcess
			defer s.end()
			s.must(os.MkdirAll(s.tree, 0o755), os.MkdirAll(s.outside(""), 0o755))
			f(s)
			s.must(s.err)
			return nil
		})
	}
}

// end closes what is open and makes the directory removable for the caller.
func (s *scene) end() {
	s.close()
	for _, name := range []string{s.tree, s.store(), s.outside("")} {
		_ = removeAll(name)
	}
}

func (s *scene) close() {
	for _, sub := range s.subs {
		if c, ok := sub.(io.Closer); ok {
			_ = c.Close()
		}
	}
	s.subs = nil
}

func (s *scene) store() string              { return s.dir + "/store" }
func (s *scene) outside(name string) string { return strings.TrimSuffix(s.dir+"/outside/"+name, "/") }

// must ends the case without a verdict if one of the errors is one.
func (s *scene) must(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		panic(stop{inconclusive(s.id, err)})
	}
}

// fail ends the case with a breach.
func (s *scene) fail(format string, args ...any) {
	panic(stop{&Breach{Case: s.id, Detail: fmt.Sprintf(format, args...)}})
}

// want ends the case with a breach unless it holds.
func (s *scene) want(holds bool, format string, args ...any) {
	if !holds {
		s.fail(format, args...)
	}
}

// subject opens the store with the scene's options.
func (s *scene) subject() Subject {
	o := s.opt
	sub, err := s.open(s.store(), &o)
	s.want(err == nil, "open: %v", err)
	s.subs = append(s.subs, sub)
	return sub
}

// again closes the store and opens it once more: what only memory knew is gone.
func (s *scene) again() Subject {
	s.close()
	return s.subject()
}

func (s *scene) checkpoint(sub Subject) rollback.Checkpoint {
	s.must(s.err)
	c, err := sub.Checkpoint(s.ctx, s.tree, rollback.Meta{Label: s.id})
	s.want(err == nil, "checkpoint: %v", err)
	s.want(!c.ID.IsZero(), "checkpoint: the ID is zero")
	return c
}

func (s *scene) restore(sub Subject, id rollback.ID) *rollback.Restoration {
	s.must(s.err)
	r, err := sub.Restore(s.ctx, id, s.tree)
	s.want(err == nil, "restore: %v", err)
	s.want(r != nil, "restore: neither a restoration nor an error")
	return r
}

func (s *scene) look() Tree {
	s.must(s.err)
	return s.lookAt(s.tree)
}

func (s *scene) lookAt(root string) Tree {
	t, err := Look(root)
	s.must(err)
	return t
}

// same ends the case unless two trees are equal in all that is captured.
func (s *scene) same(what string, want, got Tree) {
	if list := Differences(want, got); len(list) > 0 {
		s.fail("%s: %s", what, few(list))
	}
}

// untouched ends the case unless the trees are equal and the second one's inodes were left alone.
func (s *scene) untouched(what string, want, got Tree) {
	s.same(what, want, got)
	if list := Touched(want, got); len(list) > 0 {
		s.fail("%s: %s", what, few(list))
	}
}

// back takes a checkpoint, lets the tree be changed, restores, and demands what was there.
func (s *scene) back(change func()) *rollback.Restoration {
	sub := s.subject()
	want := s.look()
	c := s.checkpoint(sub)
	s.untouched("the tree after a checkpoint", want, s.look())
	change()
	s.must(s.err)
	r := s.restore(sub, c.ID)
	s.same("the tree after the restore", want, s.look())
	s.want(r.To == c.ID, "Restoration.To is %v, want %v", r.To, c.ID)
	s.want(r.Digest == c.Digest, "the digest after the restore is not the checkpoint's")
	return r
}

// refused demands an error that matches the sentinel.
func (s *scene) refused(what string, err, sentinel error) {
	s.want(err != nil, "%s: no error, want %q", what, sentinel)
	s.want(errors.Is(err, sentinel), "%s: %q does not match %q", what, err, sentinel)
}

// few joins the first entries of a list.
func few(list []string) string {
	const most = 8
	if len(list) > most {
		return strings.Join(list[:most], "; ") + fmt.Sprintf("; and %d more", len(list)-most)
	}
	return strings.Join(list, "; ")
}
