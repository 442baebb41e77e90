// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/runaway"
)

// These are attempts to get round the guards through what the package exports. Each must fail closed.

func TestBypassWithZeroValues(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, b := range map[string]*isolation.Boundary{"zero": {}, "nil": nil} {
		v, err := b.Try(ctx, isolation.Proposal{Edits: []allowlist.Edit{{Op: allowlist.Create, Path: "x"}}})
		if v != nil || !errors.Is(err, isolation.ErrClosed) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if err := b.Close(ctx); !errors.Is(err, isolation.ErrClosed) {
			t.Errorf("%s: Close: %v", name, err)
		}
		if st := b.Status(); st.Required != isolation.TierInvalid || st.Proven != 0 {
			t.Errorf("%s: %+v", name, st)
		}
	}
	if v := new(isolation.Verdict); v.Accepted || v.Stage != isolation.StageNone {
		t.Error("the zero verdict is no rejection")
	}
	spender := new(isolation.Spender)
	if err := spender.Spend(runaway.Usage{Tokens: 1}); !errors.Is(err, runaway.ErrLost) {
		t.Errorf("the zero spender: %v", err)
	}
	if seen, err := spender.Seen(runaway.Fingerprint{1}); !seen || !errors.Is(err, runaway.ErrLost) {
		t.Errorf("the zero spender: %v, %v", seen, err)
	}
	if err := spender.Check(ctx); !errors.Is(err, runaway.ErrLost) {
		t.Errorf("the zero spender: %v", err)
	}
}

// TestBypassWithIncompleteConfig: what is missing is named, all of it at once, and nothing is made.
func TestBypassWithIncompleteConfig(t *testing.T) {
	t.Parallel()
	_, err := isolation.Open(context.Background(), isolation.Config{})
	if !errors.Is(err, isolation.ErrConfig) {
		t.Fatalf("the zero Config: %v", err)
	}
	for _, field := range []string{"Governor", "Tree", "Edits", "Store", "Executors", "Run.Args", "Judge", "StateDir"} {
		contains(t, err, field)
	}
	for field, spoil := range map[string]func(c *isolation.Config, s *scene){
		"Governor":        func(c *isolation.Config, _ *scene) { c.Governor = nil },
		"Tree":            func(c *isolation.Config, _ *scene) { c.Tree = nil },
		"Edits":           func(c *isolation.Config, _ *scene) { c.Edits = nil },
		"Store":           func(c *isolation.Config, _ *scene) { c.Store = nil },
		"Executors":       func(c *isolation.Config, _ *scene) { c.Executors = nil },
		"Run.Args":        func(c *isolation.Config, _ *scene) { c.Run.Args = nil },
		"Judge":           func(c *isolation.Config, _ *scene) { c.Judge = judge(nil) },
		"StateDir":        func(c *isolation.Config, _ *scene) { c.StateDir = "" },
		"Run.ArtifactDir": func(c *isolation.Config, s *scene) { c.Run.ArtifactDir = s.home },
		"Run.Overlay":     func(c *isolation.Config, s *scene) { c.Run.Overlay = s.home },
		"Run.Label":       func(c *isolation.Config, _ *scene) { c.Run.Label = "mine" },
		"Run.Stdin":       func(c *isolation.Config, _ *scene) { c.Run.Stdin = os.Stdin },
		"Run.Workspace":   func(c *isolation.Config, s *scene) { c.Run.Workspace = s.home },
		"Run.Mounts": func(c *isolation.Config, s *scene) {
			c.Run.Mounts = []executor.Mount{{Source: s.home}}
		},
		"MinTier": func(c *isolation.Config, _ *scene) { c.MinTier = 99 },
		"RunID":   func(c *isolation.Config, _ *scene) { c.RunID = "another" },
		"-json":   func(c *isolation.Config, _ *scene) { c.Judge = isolation.GoTest{} },
		"x.xml":   func(c *isolation.Config, _ *scene) { c.Judge = isolation.JUnit{File: "x.xml"} },
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			if _, err := s.parts(); err != nil {
				t.Fatal(err)
			}
			c := s.config
			spoil(&c, s)
			b, err := isolation.OpenWith(context.Background(), c, s.hooks)
			if b != nil || !errors.Is(err, isolation.ErrConfig) {
				t.Fatalf("%v, %v", b, err)
			}
			contains(t, err, field)
			if len(s.fake.runs()) != 0 {
				t.Error("something ran")
			}
		})
	}
}

// TestBypassByPlacingTheGuardInTheTree: what guards the tree must not lie where variants write.
func TestBypassByPlacingTheGuardInTheTree(t *testing.T) {
	t.Parallel()
	t.Run("state", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		s.config.StateDir = filepath.Join(s.dir, "src", "state")
		refuses(t, s, "StateDir")
	})
	t.Run("state by a link", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		if err := os.Symlink(s.dir, filepath.Join(s.home, "link")); err != nil {
			t.Fatal(err)
		}
		s.config.StateDir = filepath.Join(s.home, "link", "src", "state")
		refuses(t, s, "StateDir")
	})
	t.Run("the tree in the state", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		s.config.StateDir = s.home
		refuses(t, s, "StateDir")
	})
	t.Run("ledger and kill file", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		s.ledger = filepath.Join(s.dir, "src", "ledger")
		refuses(t, s, "Governor")
	})
	t.Run("kill file", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		s.killFile = filepath.Join(s.dir, "src", "STOP")
		refuses(t, s, "Governor")
	})
	t.Run("policy file on the surface", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		path := filepath.Join(s.dir, "src", "policy.yaml")
		s.write("src/policy.yaml", "version: 1\nsurface:\n  - paths: [src/**]\n    ops: [modify, create]\ngate: []\n")
		s.config.Edits = must(allowlist.LoadFile(path))
		refuses(t, s, "policy file")
	})
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		s := setScene(t)
		s.store = filepath.Join(s.dir, "src", "store")
		b, _, err := s.tryOpen()
		if b != nil || !errors.Is(err, rollback.ErrTarget) {
			t.Errorf("%v, %v", b, err)
		}
	})
}

func refuses(t *testing.T, s *scene, text string) {
	t.Helper()
	b, _, err := s.tryOpen()
	if b != nil || !errors.Is(err, isolation.ErrConfig) {
		t.Fatalf("%v, %v", b, err)
	}
	contains(t, err, text)
}
