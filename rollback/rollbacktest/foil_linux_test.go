// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/rollback"
)

// Foils are what people use instead. The suite must tell them from a store, or it is about nothing.

// program runs one in the tree.
func program(ctx context.Context, tree string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = tree, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(tree)}, env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%q: %w: %s", args, err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// foil turns names of states into IDs. Digests are what was asked for: a foil checks nothing.
type foil struct {
	names   map[rollback.ID]string
	take    func(ctx context.Context, tree string) (name string, err error)
	restore func(ctx context.Context, tree, name string) error
}

func (f *foil) Checkpoint(ctx context.Context, tree string, _ rollback.Meta) (rollback.Checkpoint, error) {
	name, err := f.take(ctx, tree)
	id := rollback.ID(sha256.Sum256([]byte(name)))
	f.names[id] = name
	return rollback.Checkpoint{ID: id}, err
}

func (f *foil) Restore(ctx context.Context, id rollback.ID, tree string) (*rollback.Restoration, error) {
	name, known := f.names[id]
	if !known {
		return nil, rollback.ErrNotFound
	}
	return &rollback.Restoration{To: id, Safety: rollback.ID{1}}, f.restore(ctx, tree, name)
}

// shadowGit is a repository outside the tree, reset and cleaned: what coding agents do.
func shadowGit(store string, _ *rollback.Options) (Subject, error) {
	git := func(ctx context.Context, tree string, args ...string) (string, error) {
		env := []string{"GIT_DIR=" + store, "GIT_WORK_TREE=" + tree, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=f",
			"GIT_AUTHOR_EMAIL=f",
			"GIT_COMMITTER_NAME=f", "GIT_COMMITTER_EMAIL=f"}
		return program(ctx, tree, env, append([]string{"git"}, args...)...)
	}
	return &foil{
		names: map[rollback.ID]string{},
		take: func(ctx context.Context, tree string) (string, error) {
			for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", "c"}} {
				if _, err := git(ctx, tree, args...); err != nil {
					return "", err
				}
			}
			return git(ctx, tree, "rev-parse", "HEAD")
		},
		restore: func(ctx context.Context, tree, name string) error {
			_, reset := git(ctx, tree, "reset", "-q", "--hard", name)
			_, clean := git(ctx, tree, "clean", "-q", "-f", "-f", "-d", "-x")
			return errors.Join(reset, clean)
		},
	}, nil
}

// wholeCopies clears the tree and copies back.
func wholeCopies(store string, _ *rollback.Options) (Subject, error) {
	shell := func(ctx context.Context, tree, script, name string) error {
		_, err := program(ctx, tree, nil, "sh", "-c", script, "sh", filepath.Join(store, name))
		return err
	}
	n := 0
	return &foil{
		names: map[rollback.ID]string{},
		take: func(ctx context.Context, tree string) (string, error) {
			n++
			name := fmt.Sprint("copy", n)
			return name, shell(ctx, tree, `mkdir -p "$1" && cp -a . "$1/"`, name)
		},
		restore: func(ctx context.Context, tree, name string) error {
			return shell(ctx, tree, `chmod -R u+rwx . && find . -mindepth 1 -delete && cp -a "$1/." .`, name)
		},
	}, nil
}

var foils = []struct {
	name, needs string
	open        Open
	caught      []string
}{
	{"git add, reset --hard, clean", "git", shadowGit, []string{"C1", "C2", "R1", "R4", "R6", "F1"}},
	{"cp -a", "", wholeCopies, []string{"R5", "R6", "R11", "T2", "F1"}},
}

func TestFoils(t *testing.T) {
	inMemory(t)
	for _, c := range foils {
		t.Run(c.name, func(t *testing.T) {
			if c.needs != "" {
				testenv.Need(t, c.needs)
			}
			for _, id := range c.caught {
				if err := breach(t, id, c.open); !errors.Is(err, ErrBreach) {
					t.Errorf("%s does not catch it: %v", id, err)
				}
			}
		})
	}
}

// TestEveryCaseCatchesSomething: a case that no mutant and no foil fails may be about nothing. Those that are left need
// a defect that the plain store cannot have; each says which.
func TestEveryCaseCatchesSomething(t *testing.T) {
	caught := map[string]string{
		"C4":  "the plain store keeps names as bytes throughout",
		"C6b": "needs a stat cache without the rule about racy times",
		"C8c": "the plain store lists again whatever moved",
		"C12": "needs a store that reads holes",
		"R2":  "the plain store compares kinds first of all",
		"R3":  "needs a write that does not truncate",
		"R7":  "the plain store is confined by os.Root",
		"R8":  "R8b catches the same defect, and in time",
		"F3":  "F2 and R8b are about the same move",
		"A1":  "the changes are what the plain store does, by construction",
		"S2":  "S1 catches the same defect",
		"L4":  "L2 catches the same defect",
		"P1":  "R1 to R5 and H1 catch what it would",
	}
	for _, f := range foils {
		for _, id := range f.caught {
			caught[id] = f.name
		}
	}
	for _, ids := range mutants {
		for _, id := range ids {
			caught[id] = "a mutant"
		}
	}
	for _, c := range append(Cases(), processCases(t)...) {
		if caught[c.ID] == "" {
			t.Errorf("no mutant fails %s, %s", c.ID, c.Name)
		}
	}
}
