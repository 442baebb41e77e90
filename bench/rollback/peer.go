// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/evoseal/containment/rollback"
)

// peer keeps states of a tree. Each call does all that a caller would need: nothing stays open between calls.
type peer interface {
	name() string
	start(ctx context.Context, tree, store string) error // an empty store
	checkpoint(ctx context.Context) (id string, err error)
	restore(ctx context.Context, id string) error
	verify(ctx context.Context) error // errors.ErrUnsupported: it cannot
}

// available returns us first, and why others are left out.
func available() (peers []peer, missing []string) {
	peers = []peer{&ours{}}
	for _, p := range []struct {
		program string
		peer    peer
	}{{"git", &git{}}, {"restic", &restic{}}, {"cp", &copies{}}} {
		if _, err := exec.LookPath(p.program); err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", p.program, err))
			continue
		}
		peers = append(peers, p.peer)
	}
	return peers, missing
}

// ours is package rollback with its defaults.
type ours struct{ tree, store string }

func (*ours) name() string { return "rollback" }

func (o *ours) start(_ context.Context, tree, store string) error {
	o.tree, o.store = tree, store
	return nil
}

func (o *ours) open(f func(s *rollback.Store) error) error {
	s, err := rollback.Open(o.store, nil)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

func (o *ours) checkpoint(ctx context.Context) (id string, err error) {
	err = o.open(func(s *rollback.Store) error {
		c, err := s.Checkpoint(ctx, o.tree, rollback.Meta{})
		id = c.ID.String()
		return err
	})
	return id, err
}

func (o *ours) restore(ctx context.Context, text string) error {
	id, err := rollback.ParseID(text)
	if err != nil {
		return err
	}
	return o.open(func(s *rollback.Store) error {
		_, err := s.Restore(ctx, id, o.tree)
		return err
	})
}

func (o *ours) verify(ctx context.Context) error {
	return o.open(func(s *rollback.Store) error { return s.Verify(ctx, rollback.ID{}) })
}

// command runs a program and returns what it printed.
func command(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C"}, env...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%q: %w: %s", args, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
}

// git is a repository whose directory lies outside the tree, as coding agents keep their checkpoints.
type git struct {
	tree string
	env  []string
}

func (*git) name() string { return "git" }

func (g *git) run(ctx context.Context, args ...string) (string, error) {
	return command(ctx, g.tree, g.env, append([]string{"git", "-c", "core.autocrlf=false", "-c", "gc.auto=0"}, args...)...)
}

func (g *git) start(ctx context.Context, tree, store string) error {
	g.tree = tree
	g.env = []string{"GIT_DIR=" + store, "GIT_WORK_TREE=" + tree, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=b",
		"GIT_AUTHOR_EMAIL=b",
		"GIT_COMMITTER_NAME=b", "GIT_COMMITTER_EMAIL=b"}
	_, err := g.run(ctx, "init", "-q")
	return err
}

func (g *git) checkpoint(ctx context.Context) (string, error) {
	if _, err := g.run(ctx, "add", "-A", "-f"); err != nil {
		return "", err
	}
	tree, err := g.run(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	return g.run(ctx, "commit-tree", "-m", "c", tree)
}

func (g *git) restore(ctx context.Context, id string) error {
	_, err := g.run(ctx, "checkout", "-q", "-f", id)
	return err
}

func (g *git) verify(ctx context.Context) error {
	_, err := g.run(ctx, "fsck", "--full", "--no-progress", "--no-dangling")
	return err
}

// restic is a backup program with a repository of packs.
type restic struct {
	tree string
	env  []string
}

func (*restic) name() string { return "restic" }

func (r *restic) start(ctx context.Context, tree, store string) error {
	r.tree = tree
	r.env = []string{"RESTIC_REPOSITORY=" + store, "RESTIC_PASSWORD=bench", "RESTIC_CACHE_DIR=" + store + "-cache"}
	_, err := command(ctx, tree, r.env, "restic", "init", "-q")
	return err
}

func (r *restic) checkpoint(ctx context.Context) (string, error) {
	if _, err := command(ctx, r.tree, r.env, "restic", "backup", "-q", "."); err != nil {
		return "", err
	}
	return command(ctx, r.tree, r.env, "sh", "-c",
		`restic snapshots --latest 1 --json | sed 's/.*"short_id":"\([0-9a-f]*\)".*/\1/'`)
}

func (r *restic) restore(ctx context.Context, id string) error {
	_, err := command(ctx, r.tree, r.env, "restic", "restore", "-q", id, "--target", r.tree)
	return err
}

func (r *restic) verify(ctx context.Context) error {
	_, err := command(ctx, r.tree, r.env, "restic", "check", "-q", "--read-data")
	return err
}

// copies keeps whole copies.
type copies struct {
	tree, store string
	n           int
}

func (*copies) name() string { return "cp -a" }

func (c *copies) start(_ context.Context, tree, store string) error {
	c.tree, c.store, c.n = tree, store, 0
	return os.MkdirAll(store, 0o755)
}

func (c *copies) copy(ctx context.Context, from, to string) error {
	_, err := command(ctx, c.tree, nil, "sh", "-c", `cp -a "$1/." "$2/" && sync -f "$2"`, "sh", from, to)
	return err
}

func (c *copies) checkpoint(ctx context.Context) (string, error) {
	c.n++
	id := filepath.Join(c.store, fmt.Sprint(c.n))
	if err := os.Mkdir(id, 0o755); err != nil {
		return "", err
	}
	return id, c.copy(ctx, c.tree, id)
}

func (c *copies) restore(ctx context.Context, id string) error { return c.copy(ctx, id, c.tree) }

func (*copies) verify(context.Context) error { return errors.ErrUnsupported }
