// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/rollback"
)

// Each test here fails if one guard, on which no other test depends, is taken out.

// TestTrustedCopyIsOfTheSealedBytes: somebody changes the gate after it was sealed and before it is copied.
func TestTrustedCopyIsOfTheSealedBytes(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.hooks.At = func(point string) {
		if point == "gate-sealed" {
			s.write("gate/check.sh", "exit 0\n")
		}
	}
	if b, _, err := s.tryOpen(); b != nil || !errors.Is(err, allowlist.ErrTampered) {
		t.Errorf("%v, %v", b, err)
	}
	if copied, err := os.ReadFile(filepath.Join(s.config.StateDir, "gate", "gate", "check.sh")); err == nil {
		t.Errorf("what nobody sealed is trusted: %q", copied)
	}
}

// TestNothingIsRestoredFromAnotherCheckpoint: the log has the name of a checkpoint and another digest than it has. Which
// of the two is the accepted tree nobody knows, so the tree stays as it is.
func TestNothingIsRestoredFromAnotherCheckpoint(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(d *rollback.Digest){
		"another content": func(d *rollback.Digest) { d.Content[0] ^= 1 },
		"other times":     func(d *rollback.Digest) { d.Tree[0] ^= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			closeParts, err := s.parts()
			if err != nil {
				t.Fatal(err)
			}
			c, err := s.checkpoint()
			if err != nil {
				t.Fatal(err)
			}
			closeParts()
			change(&c.Digest)
			if err := os.Mkdir(s.config.StateDir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := isolation.Begun(s.config.StateDir, "run", c); err != nil {
				t.Fatal(err)
			}
			s.write("src/a.txt", "alpha by hand\n")
			before := s.state()
			if b, _, err := s.tryOpen(); b != nil || !errors.Is(err, isolation.ErrTreeUnknown) {
				t.Errorf("%v, %v", b, err)
			}
			if diff := cmp.Diff(before, s.state()); diff != "" {
				t.Errorf("the tree was changed:\n%s", diff)
			}
		})
	}
}

// checkpoint captures the tree as it is.
func (s *scene) checkpoint() (c rollback.Checkpoint, err error) {
	err = s.config.Tree.Lend(func(dir string) error {
		c, err = s.config.Store.Checkpoint(context.Background(), dir, rollback.Meta{})
		return err
	})
	return c, err
}

// TestWhatTheStoreLeavesOutIsRefused: a name of the store's own is in no checkpoint, so a run that begins with one could
// not be put back.
func TestWhatTheStoreLeavesOutIsRefused(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.write(".rollback-note", "of somebody\n")
	b, _, err := s.tryOpen()
	if b != nil || !errors.Is(err, isolation.ErrConfig) {
		t.Errorf("%v, %v", b, err)
	}
	contains(t, err, ".rollback-note")
}
