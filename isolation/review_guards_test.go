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
)

// Each test here fails if one guard, on which no other test depends, is taken out.

func TestOutputThatIsNotWholeIsToldToTheJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		out  executor.Output
		want bool
	}{
		"whole":      {executor.Output{Total: 5}, true},
		"more":       {executor.Output{Total: 6}, false},
		"less":       {executor.Output{Total: 4}, false},
		"cut off":    {executor.Output{Total: 5, LiveErr: errAny}, false},
		"incomplete": {executor.Output{Total: 5, Incomplete: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.fake.run = func(_ context.Context, spec executor.Spec) (*executor.Result, error) {
				_, err := spec.Stdout.Write([]byte("hello"))
				r := ended(0)
				r.Stdout = c.out
				return r, err
			}
			asked := false
			s.config.Judge = judge(func(_ context.Context, e isolation.Evaluation) (isolation.Ruling, error) {
				if asked = true; string(e.Stdout) != "hello" || e.StdoutComplete != c.want {
					t.Errorf("%q, complete: %v", e.Stdout, e.StdoutComplete)
				}
				return isolation.Keep, nil
			})
			b, _ := s.open()
			if _, err := b.Try(context.Background(), s.good("1")); err != nil || !asked {
				t.Errorf("asked: %v, %v", asked, err)
			}
		})
	}
}

// TestReportThatProvesTooLittleIsNoProof: also one that came without an error.
func TestReportThatProvesTooLittleIsNoProof(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.hooks.Verify = func(_ context.Context, ex executor.Executor, o *isolation.VerifyOptions) (isolation.Report, error) {
		return isolation.Report{Needs: o.Needs, Claimed: ex.Capabilities(), Proven: o.Needs &^ executor.CPUBounded}, nil
	}
	if b, _, err := s.tryOpen(); b != nil || !errors.Is(err, isolation.ErrDenied) || !errors.Is(err, isolation.ErrUnproven) {
		t.Errorf("%v, %v", b, err)
	}
}

func TestMountsThatShowTheGuardsAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".", "tree", "tree/src", "state", "ledger"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			if err := os.MkdirAll(filepath.Join(s.home, "state"), 0o700); err != nil {
				t.Fatal(err)
			}
			s.config.Run.Mounts = []executor.Mount{{Source: filepath.Join(s.home, name), Target: "/mnt"}}
			if b, _, err := s.tryOpen(); b != nil || !errors.Is(err, isolation.ErrConfig) {
				t.Errorf("%v, %v", b, err)
			}
		})
	}
}

// TestNothingIsWrittenWithoutACheckpoint: the one of the accepted tree is gone, so nothing could be put back.
func TestNothingIsWrittenWithoutACheckpoint(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	id, before := b.Status().Checkpoint, s.state()
	if err := errors.Join(s.config.Store.Unpin(t.Context(), id), s.config.Store.Delete(t.Context(), id)); err != nil {
		t.Fatal(err)
	}
	v, err := b.Try(context.Background(), s.good("1"))
	if err != nil || !v.Because(isolation.WhyCheckpointFailed) || len(s.fake.runs()) != 0 || before != s.state() {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestDamagedCheckpointIsFoundAtOpen: before it is needed, and also while the tree is as it should be.
func TestDamagedCheckpointIsFoundAtOpen(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.acceptOne()
	packs, err := filepath.Glob(filepath.Join(s.home, "store", "packs", "*"))
	if err != nil || len(packs) == 0 {
		t.Fatal(packs, err)
	}
	for _, pack := range packs {
		data := must(os.ReadFile(pack))
		data[len(data)/2] ^= 1
		if err := errors.Join(os.Chmod(pack, 0o600), os.WriteFile(pack, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if b, _, err := s.tryOpen(); b != nil || !errors.Is(err, isolation.ErrTreeUnknown) {
		t.Errorf("%v, %v", b, err)
	}
}

// TestTreeThatChangesWhileItIsOpened: between the first checkpoint and the seal.
func TestTreeThatChangesWhileItIsOpened(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.hooks.At = func(point string) {
		if point == "baseline" {
			s.write("src/b.txt", "somebody else\n")
		}
	}
	if b, _, err := s.tryOpen(); b != nil || !errors.Is(err, isolation.ErrTreeUnknown) {
		t.Errorf("%v, %v", b, err)
	}
}

// TestWhatNoCheckpointHoldsIsCompared: a repository's hooks cannot be put back, so a step that changed them is not over
// by a restoration.
func TestWhatNoCheckpointHoldsIsCompared(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.write(".git/HEAD", "ref: refs/heads/main\n")
	s.write(".git/config", "[core]\n\tbare = false\n")
	for _, dir := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(s.dir, ".git", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := s.open()
	g := generator(func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) {
		s.write(".git/hooks/pre-commit", "#!/bin/sh\n")
		return s.good("1").Edits, nil
	})
	v, err := b.Try(context.Background(), isolation.Proposal{Generate: g})
	if !errors.Is(err, isolation.ErrTreeUnknown) || v.Accepted || v.Tree != "" || len(s.fake.runs()) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
}
