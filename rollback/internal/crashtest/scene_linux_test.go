// SPDX-License-Identifier: Apache-2.0

package crashtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/rollback/rollbacktest"
)

// scene is a tree with a store, and three states of it. Three, because with two any state is the last one or the next.
type scene struct {
	t           *testing.T
	store, tree string
	sync        rollback.SyncMode
	ids         []rollback.ID
	looks       []rollbacktest.Tree
	at          int // the state that stands
}

// user is what no checkpoint holds, or nobody changes; it must survive everything.
var user = map[string]string{
	".git/HEAD": "ref: refs/heads/main\n", ".git/objects/ab/cd": strings.Repeat("object", 1000),
	"lib/.git":   "gitdir: ../.git/modules/lib\n",
	"cache/mine": strings.Repeat("excluded", 500), "deep/cache/more": "excluded too",
}

func newScene(t *testing.T, store, tree string, sync rollback.SyncMode) *scene {
	t.Helper()
	sc := &scene{t: t, store: store, tree: tree, sync: sync}
	if err := os.MkdirAll(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range user {
		sc.write(name, text)
	}
	s := sc.open()
	defer sc.close(s)
	for state := range 3 {
		sc.change(state)
		c, err := s.Checkpoint(t.Context(), tree, rollback.Meta{})
		if err != nil {
			t.Fatal(err)
		}
		sc.ids, sc.looks = append(sc.ids, c.ID), append(sc.looks, sc.look())
	}
	sc.at = 2
	return sc
}

// change makes the tree a state of its own: other bytes, names, kinds, modes, links, and half of the files gone.
func (sc *scene) change(state int) {
	sc.t.Helper()
	for i := range 150 {
		name := fmt.Sprintf("d%d/f%d", i%10, i)
		switch {
		case i%3 == state:
			sc.do(os.RemoveAll(filepath.Join(sc.tree, name)))
		case i%5 < 3:
			sc.write(name, strings.Repeat(fmt.Sprint("state ", state, " of ", i, "\n"), 1+i*i%400))
		default:
			sc.write(name, fmt.Sprint("always ", i))
		}
	}
	for _, name := range []string{"kind", "link", "twin", fmt.Sprint("dir", (state+2)%3)} {
		sc.do(os.RemoveAll(filepath.Join(sc.tree, name)))
	}
	switch state {
	case 0:
		sc.write("kind", "a file")
	case 1:
		sc.write("kind/of/directory", "a directory")
	default:
		sc.do(os.Symlink("d1", filepath.Join(sc.tree, "kind")))
	}
	sc.write(fmt.Sprintf("dir%d/a/b/c/file", state), "deep")
	sc.do(os.MkdirAll(filepath.Join(sc.tree, fmt.Sprintf("dir%d/empty", state)), 0o755))
	sc.do(os.Symlink(fmt.Sprint("d", state), filepath.Join(sc.tree, "link")))
	sc.do(os.Link(filepath.Join(sc.tree, fmt.Sprintf("d%d/f%d", 1+state, 1+state)), filepath.Join(sc.tree, "twin")))
	sc.do(os.Chmod(filepath.Join(sc.tree, "d5"), os.FileMode(0o700|state)))
}

func (sc *scene) do(err error) {
	sc.t.Helper()
	if err != nil {
		sc.t.Fatal(err)
	}
}

func (sc *scene) write(name, text string) {
	sc.t.Helper()
	path := filepath.Join(sc.tree, name)
	sc.do(os.MkdirAll(filepath.Dir(path), 0o755))
	sc.do(os.WriteFile(path, []byte(text), 0o644))
}

func (sc *scene) look() rollbacktest.Tree {
	sc.t.Helper()
	tree, err := rollbacktest.Look(sc.tree)
	sc.do(err)
	return tree
}

func (sc *scene) open() *rollback.Store {
	sc.t.Helper()
	s, err := rollback.Open(sc.store, options(sc.sync))
	sc.do(err)
	return s
}

func (sc *scene) close(s *rollback.Store) {
	sc.t.Helper()
	sc.do(s.Close())
}

// order is what the next worker does: restores and checkpoints take turns.
func (sc *scene) order(trial int) order {
	o := order{Store: sc.store, Tree: sc.tree, Sync: sc.sync, From: sc.at}
	if trial%3 != 2 {
		o.States = sc.ids
	}
	return o
}

// check demands after a crash what the package documentation promises, and makes the tree one of the states. So many
// late reports are no promise, but may be true.
func (sc *scene) check(o order, reported []string, late int) error {
	ctx := sc.t.Context()
	s, err := rollback.Open(sc.store, options(sc.sync))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer s.Close()
	if _, err := s.Recover(ctx); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	if err := s.Verify(ctx, rollback.ID{}); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if len(o.States) > 0 {
		if err := sc.checkTree(reported[len(reported)-1], late); err != nil {
			return err
		}
	} else if err := sc.checkCheckpoints(s, reported); err != nil {
		return err
	}
	for name, text := range user {
		if got, err := os.ReadFile(filepath.Join(sc.tree, name)); err != nil || string(got) != text {
			return fmt.Errorf("%s, which no checkpoint holds, is %.30q (%w)", name, got, err)
		}
	}
	next := (sc.at + 1 + rand.IntN(2)) % 3
	if _, err := s.Restore(ctx, sc.ids[next], sc.tree); err != nil {
		return fmt.Errorf("the next restore: %w", err)
	}
	if list := rollbacktest.Differences(sc.looks[next], sc.look()); len(list) > 0 {
		return fmt.Errorf("after the next restore: %q", list[:min(len(list), 5)])
	}
	sc.at = next
	return nil
}

// checkTree demands the state of the last report, or the one after it; each late report makes one more possible.
func (sc *scene) checkTree(report string, late int) error {
	var last int
	if _, err := fmt.Sscanf(report, "restored %d", &last); err != nil {
		return err
	}
	now := sc.look()
	var all []string
	for i := range min(2+late, 3) {
		state := (last + i) % 3
		list := rollbacktest.Differences(sc.looks[state], now)
		if len(list) == 0 {
			sc.at = state
			return nil
		}
		all = append(all, fmt.Sprintf("from state %d in %d entries: %q", state, len(list), list[:min(len(list), 5)]))
	}
	return fmt.Errorf("the tree is neither old nor new; it differs %s", strings.Join(all, "; "))
}

// checkCheckpoints restores what was reported: the first, the last and some between.
func (sc *scene) checkCheckpoints(s *rollback.Store, reported []string) error {
	ctx := sc.t.Context()
	for i := 0; i < len(reported); i += 1 + len(reported)/4 {
		text, number, _ := strings.Cut(reported[len(reported)-1-i], " ")
		id, err := rollback.ParseID(text)
		if err != nil {
			return err
		}
		if _, err := s.Get(ctx, id); err != nil {
			return fmt.Errorf("a checkpoint that was reported: %w", err)
		}
		if _, err := s.Restore(ctx, id, sc.tree); err != nil {
			return fmt.Errorf("a checkpoint that was reported: %w", err)
		}
		if got, err := os.ReadFile(filepath.Join(sc.tree, "count")); err != nil || string(got) != "number "+number {
			return fmt.Errorf("checkpoint number %s holds %q (%w)", number, got, err)
		}
	}
	return nil
}
