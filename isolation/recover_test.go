// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/runaway"
)

// acceptOne makes a session in which one variant is kept.
func (s *scene) acceptOne() string {
	s.t.Helper()
	b, closeAll := s.open()
	if v, err := b.Try(context.Background(), s.good("1")); err != nil || !v.Accepted {
		s.t.Fatalf("%+v, %v", v, err)
	}
	closeAll()
	return s.state()
}

// TestReopenFindsTheAcceptedTree: whatever was done to the tree between two sessions, it is the accepted one again.
func TestReopenFindsTheAcceptedTree(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *scene){
		"nothing":      func(*scene) {},
		"file changed": func(s *scene) { s.write("src/a.txt", "by hand\n") },
		"file added":   func(s *scene) { s.write("src/x/y.txt", "by hand\n") },
		"gate changed": func(s *scene) { s.write("gate/check.sh", "exit 0\n") },
		"file removed": func(s *scene) { _ = os.Remove(filepath.Join(s.dir, "README")) },
		"mode changed": func(s *scene) { _ = os.Chmod(filepath.Join(s.dir, "src", "b.txt"), 0o755) },
		"link": func(s *scene) {
			path := filepath.Join(s.dir, "src", "b.txt")
			_ = os.Remove(path)
			_ = os.Symlink("/etc/passwd", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			want := s.acceptOne()
			change(s)
			b, _ := s.open()
			if diff := cmp.Diff(want, s.state()); diff != "" {
				t.Errorf("the tree is another one:\n%s", diff)
			}
			if b.Status().Governor.Attempts != 1 {
				t.Error("opening was counted as an iteration")
			}
			if v, err := b.Try(context.Background(), s.good("2")); err != nil || !v.Accepted {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

// TestTreeUnknownRefuses: what cannot be compared or put back is not started from, now or later.
func TestTreeUnknownRefuses(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, s *scene){
		"checkpoint deleted": func(t *testing.T, s *scene) {
			for c, err := range s.config.Store.All(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(s.config.Store.Unpin(t.Context(), c.ID), s.config.Store.Delete(t.Context(), c.ID)); err != nil {
					t.Fatal(err)
				}
			}
		},
		"packs damaged": func(t *testing.T, s *scene) {
			packs, err := filepath.Glob(filepath.Join(s.home, "store", "packs", "*"))
			if err != nil || len(packs) == 0 {
				t.Fatal(packs, err)
			}
			for _, pack := range packs {
				data, err := os.ReadFile(pack)
				if err != nil || len(data) < 100 {
					continue
				}
				data[len(data)/2] ^= 1
				if err := errors.Join(os.Chmod(pack, 0o600), os.WriteFile(pack, data, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.acceptOne()
			s.write("src/a.txt", "by hand\n")
			if _, err := s.parts(); err != nil {
				t.Fatal(err)
			}
			spoil(t, s)
			_ = s.config.Store.Close()
			var err error
			s.config.Store, err = rollback.Open(filepath.Join(s.home, "store"), &rollback.Options{
				Exclude: []string{}, Foreign: rollback.ForeignQuarantine,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.config.Store.Close()
			for range 2 {
				b, err := isolation.OpenWith(context.Background(), s.config, s.hooks)
				if b != nil || !errors.Is(err, isolation.ErrTreeUnknown) {
					t.Fatalf("%v, %v", b, err)
				}
			}
			if n := len(s.fake.runs()); n != 1 {
				t.Errorf("%d runs", n)
			}
			if phases := s.phases(); phases[len(phases)-1] != "unknown" {
				t.Errorf("the log says %v", phases)
			}
		})
	}
}

// TestRestoreFailsInAStep: the tree cannot be put back, so the run is over.
func TestRestoreFailsInAStep(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	s.hooks.At = nil
	s.fake.run = func(ctx context.Context, _ executor.Spec) (*executor.Result, error) {
		_ = s.config.Store.Close() // the disk is gone
		return ended(1), nil
	}
	v, err := b.Try(context.Background(), s.good("1"))
	if !errors.Is(err, isolation.ErrTreeUnknown) || v.Accepted || v.Tree != "" || !v.Because(isolation.WhyTreeUnknown) {
		t.Fatalf("%+v, %v", v, err)
	}
	if v, err := b.Try(context.Background(), s.good("2")); v != nil || !errors.Is(err, isolation.ErrTreeUnknown) {
		t.Errorf("it goes on: %+v, %v", v, err)
	}
	if st := b.Status(); !errors.Is(st.Lost, isolation.ErrTreeUnknown) || st.Governor.Stop == nil {
		t.Errorf("%+v", st)
	}
}

// TestLogIsNotMadeAnew: a run that has begun has a log. If it is gone or was changed, nobody knows which tree was
// accepted.
func TestLogIsNotMadeAnew(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *scene) error{
		"gone": func(s *scene) error { return os.RemoveAll(s.config.StateDir) },
		"changed": func(s *scene) error {
			path := filepath.Join(s.config.StateDir, "isolation-run.journal")
			data, err := os.ReadFile(path)
			data = bytes.Replace(data, []byte(`"phase":"kept"`), []byte(`"phase":"keep"`), 1)
			return errors.Join(err, os.WriteFile(path, data, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.acceptOne()
			if err := spoil(s); err != nil {
				t.Fatal(err)
			}
			if b, _, err := s.tryOpen(); b != nil || !errors.Is(err, isolation.ErrLog) {
				t.Errorf("%v, %v", b, err)
			}
		})
	}
}

// TestStoreThatLeavesThingsOut is refused: what it leaves out could not be taken back.
func TestStoreThatLeavesThingsOut(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	if _, err := s.parts(); err != nil {
		t.Fatal(err)
	}
	_ = s.config.Store.Close()
	s.config.Store = must(rollback.Open(filepath.Join(s.home, "store"), nil))
	defer s.config.Store.Close()
	b, err := isolation.OpenWith(context.Background(), s.config, s.hooks)
	if b != nil || !errors.Is(err, isolation.ErrConfig) {
		t.Errorf("%v, %v", b, err)
	}
	contains(t, err, "__pycache__")
}

// TestSandboxLost: after it, nothing begins before a fresh sandbox was verified, in this process or in the next.
func TestSandboxLost(t *testing.T) {
	t.Parallel()
	lose := true
	s := setScene(t)
	s.fake.run = func(_ context.Context, spec executor.Spec) (*executor.Result, error) {
		if lose {
			lose = false
			return nil, executor.ErrLost
		}
		return gated(spec)
	}
	verified, works := 0, true
	s.hooks.Verify = func(ctx context.Context, ex executor.Executor, o *isolation.VerifyOptions) (isolation.Report, error) {
		if verified++; verified > 1 && !o.Fresh {
			t.Error("a report from before the loss was believed")
		}
		if !works {
			return isolation.Report{}, isolation.ErrUnproven
		}
		return isolation.Believe(ctx, ex, o)
	}
	b, _ := s.open()
	v, err := b.Try(context.Background(), s.good("1"))
	if err != nil || v.Accepted || !v.Because(isolation.WhySandboxLost) || verified != 2 {
		t.Fatalf("%+v, %v; %d verifications", v, err, verified)
	}
	if v, err = b.Try(context.Background(), s.good("2")); err != nil || !v.Accepted {
		t.Fatalf("it does not go on: %+v, %v", v, err)
	}
	// Somebody else has paused the run as well: that pause is not ours to end.
	lose = true
	if err := s.config.Governor.Pause("lunch"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if v, err = b.Try(ctx, s.good("3")); err == nil || v.Accepted || b.Status().Governor.Paused == "" {
		t.Errorf("%+v, %v", v, err)
	}
	if err := s.config.Governor.Resume(runaway.Approval{By: "the test", Reason: "lunch is over"}); err != nil {
		t.Fatal(err)
	}
	works = false
	v, err = b.Try(context.Background(), s.good("4"))
	var stop *runaway.StopError
	if !errors.As(err, &stop) || stop.Reason != runaway.ReasonIsolation || v.Accepted {
		t.Errorf("no fresh sandbox, and it goes on: %+v, %v", v, err)
	}
}
