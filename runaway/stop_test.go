// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/runaway"
)

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestKillFile appears while an iteration is open. Every call sees it, and so does the governor by itself.
func TestKillFile(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(*runaway.Governor, *runaway.Iteration) error{
		"begin": func(g *runaway.Governor, _ *runaway.Iteration) error {
			_, err := g.Begin(context.Background(), runaway.Estimate{})
			return err
		},
		"check": func(_ *runaway.Governor, it *runaway.Iteration) error { return it.Check(context.Background()) },
		"spend": func(_ *runaway.Governor, it *runaway.Iteration) error { return it.Spend(runaway.Usage{}) },
		"seen":  func(_ *runaway.Governor, it *runaway.Iteration) error { _, err := it.Seen(print(1)); return err },
		"end":   func(_ *runaway.Governor, it *runaway.Iteration) error { return it.End(accepted) },
		"alone": func(_ *runaway.Governor, it *runaway.Iteration) error {
			ctx, cancel := it.Bind(context.Background())
			defer cancel()
			<-ctx.Done()
			return context.Cause(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, err := runaway.FileStore(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(s.(runaway.Located).Dir(), runaway.DefaultKillFile)
				g := open(t, s, runaway.Limits{MaxConcurrent: 2}, nil)
				it := begin(t, g)
				ctx, cancel := it.Bind(t.Context())
				defer cancel()
				touch(t, file)
				stop := wantStop(t, look(g, it), runaway.ReasonKillFile)
				<-ctx.Done()
				if context.Cause(ctx) != error(stop) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
				_ = it.End(rejected)
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
				_, err = g.Begin(t.Context(), runaway.Estimate{})
				wantStop(t, err, runaway.ReasonKillFile) // it does not come back to life
			})
		})
	}
}

// TestKillFileCannotBeSeen: whatever is in the way of looking stops the run.
func TestKillFileCannotBeSeen(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir string) error{
		"replaced": func(dir string) error { return errors.Join(os.Rename(dir, dir+"-"), os.Mkdir(dir, 0o700)) },
		"gone":     func(dir string) error { return os.Remove(dir) },
		"link": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-"), os.Symlink(dir+"-",
				dir))
		},
		"file":          func(dir string) error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)) },
		"dangling link": func(dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "STOP")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "control")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			g := open(t, runaway.UnsafeMemStore(), runaway.Limits{}, &runaway.Options{KillFile: filepath.Join(dir,
				"STOP")})
			once(t, g, accepted)
			other := open(t, runaway.UnsafeMemStore(), runaway.Limits{}, &runaway.Options{KillFile: filepath.Join(dir,
				"STOP")})
			it, err := other.Begin(t.Context(), runaway.Estimate{})
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			wantStop(t, it.Check(t.Context()), runaway.ReasonKillFile)
			_ = it.End(rejected)
			_, err = g.Begin(t.Context(), runaway.Estimate{})
			stop := wantStop(t, err, runaway.ReasonKillFile)
			if name == "gone" && !errors.Is(stop, fs.ErrNotExist) {
				t.Errorf("the cause is missing: %v", stop)
			}
		})
	}
}

func TestKillFileUnreadable(t *testing.T) {
	testenv.Need(t, "unprivileged")
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "control")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	g := open(t, runaway.UnsafeMemStore(), runaway.Limits{}, &runaway.Options{KillFile: filepath.Join(dir, "STOP")})
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	_, err := g.Begin(t.Context(), runaway.Estimate{})
	if stop := wantStop(t, err, runaway.ReasonKillFile); !errors.Is(stop, fs.ErrPermission) {
		t.Errorf("the cause is missing: %v", stop)
	}
}

func TestPauseFile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "WAIT")
		g := open(t, runaway.UnsafeMemStore(), runaway.Limits{PerIteration: time.Minute},
			&runaway.Options{PauseFile: file})
		it := begin(t, g)
		touch(t, file)
		checked := make(chan error)
		go func() { checked <- it.Check(t.Context()) }()
		time.Sleep(time.Hour)
		if st := g.Status(); st.Paused == "" || st.Active != 0 || len(st.Open) != 1 {
			t.Errorf("%+v", st)
		}
		if err := g.Resume(runaway.Approval{By: "me", Reason: "impatient"}); err != nil || g.Status().Paused == "" {
			t.Errorf("resume removed the file: %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := g.Begin(short, runaway.Estimate{}); !errors.Is(err, runaway.ErrPaused) {
			t.Errorf("begin: %v", err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(<-checked, it.End(accepted)); err != nil {
			t.Error(err)
		}
	})
}

// TestFilesInTheTree: a variant must not reach what controls it, under whatever name.
func TestFilesInTheTree(t *testing.T) {
	t.Parallel()
	tree, other := t.TempDir(), t.TempDir()
	inner := filepath.Join(tree, "a", "b")
	if err := errors.Join(os.MkdirAll(inner, 0o755), os.Symlink(inner, filepath.Join(other, "link")),
		os.Symlink(tree, filepath.Join(other, "alias"))); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{
		"itself": tree, "below": inner, "not yet there": filepath.Join(inner, "x", "y"),
		"by a link":    filepath.Join(other, "link"),
		"below a link": filepath.Join(other, "link", "new"), "dots": filepath.Join(other, "..", filepath.Base(tree)),
	} {
		for _, treeName := range []string{tree, filepath.Join(other, "alias")} {
			s, err := runaway.FileStore(dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := runaway.Open(t.Context(), runID, runaway.Limits{}, s,
				&runaway.Options{Tree: treeName}); !errors.Is(err, runaway.ErrUntrusted) {
				t.Errorf("state %s: %v", name, err)
			}
			if _, err := os.Stat(dir); name == "not yet there" && err == nil {
				t.Errorf("state %s: it was made", name)
			}
			if name == "not yet there" || name == "below a link" {
				continue
			}
			for _, o := range []*runaway.Options{
				{Tree: treeName, KillFile: filepath.Join(dir, "STOP")}, {Tree: treeName, PauseFile: filepath.Join(dir,
					"PAUSE")},
			} {
				if _, err := runaway.Open(t.Context(), runID, runaway.Limits{}, runaway.UnsafeMemStore(),
					o); !errors.Is(err, runaway.ErrUntrusted) {
					t.Errorf("file %s: %v", name, err)
				}
			}
		}
	}
	s, _ := runaway.FileStore(filepath.Join(other, "state"))
	open(t, s, runaway.Limits{}, &runaway.Options{Tree: tree})
}

func TestOthersMayWrite(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o722, 0o720, 0o777 | os.ModeSticky} {
		dir := filepath.Join(t.TempDir(), "d")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
		_, err := runaway.Open(t.Context(), runID, runaway.Limits{}, runaway.UnsafeMemStore(),
			&runaway.Options{KillFile: dir + "/STOP"})
		if !errors.Is(err, runaway.ErrUntrusted) {
			t.Errorf("%v: %v", mode, err)
		}
		s, _ := runaway.FileStore(dir)
		if _, err := runaway.Open(t.Context(), runID, runaway.Limits{}, s, nil); !errors.Is(err, runaway.ErrUntrusted) {
			t.Errorf("state in %v: %v", mode, err)
		}
	}
}

// TestFirstReasonStands: later ones change nothing, not even after a restart.
func TestFirstReasonStands(t *testing.T) {
	t.Parallel()
	s := runaway.UnsafeMemStore()
	g := open(t, s, runaway.Limits{MaxIterations: 1}, nil)
	it := begin(t, g)
	if err := errors.Join(g.Stop(runaway.ReasonIsolation, "canary"), g.Stop(runaway.ReasonOperator, "me too"),
		g.Stop(200, "odd")); err != nil {
		t.Fatal(err)
	}
	stop := wantStop(t, it.End(rejected), runaway.ReasonIsolation)
	if stop.Graceful || stop.Detail != "canary" || stop.Iteration != 1 || stop.RunID != runID || stop.At.IsZero() {
		t.Errorf("%+v", stop)
	}
	shut(t, g)
	if again := refused(t, s, runaway.Limits{}, nil); *again != *stop {
		t.Errorf("%+v", again)
	}
	g = open(t, runaway.UnsafeMemStore(), runaway.Limits{}, nil)
	if err := g.Stop(200, "odd"); err != nil || g.Status().Stop.Reason != runaway.ReasonOperator {
		t.Errorf("%v, %v", err, g.Status().Stop)
	}
}

// TestPrecedence: of several reasons at one moment, the order of the constants decides.
func TestPrecedence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		reasons := []struct {
			reason runaway.Reason
			relax  func(*runaway.Limits)
		}{
			{runaway.ReasonDeadline, func(l *runaway.Limits) { l.Deadline = time.Time{} }},
			{runaway.ReasonWall, func(l *runaway.Limits) { l.Wall = none }},
			{runaway.ReasonCost, func(l *runaway.Limits) { l.Budget.Cost = none }},
			{runaway.ReasonTokens, func(l *runaway.Limits) { l.Budget.Tokens = none }},
			{runaway.ReasonIterations, func(l *runaway.Limits) { l.MaxIterations = 9 }},
			{runaway.ReasonConsecutiveFailures, func(l *runaway.Limits) { l.MaxConsecutiveFailures = 9 }},
			{runaway.ReasonNoImprovement, func(l *runaway.Limits) { l.NoImprovement = 9 }},
			{runaway.ReasonCompleted, nil},
		}
		for i, want := range reasons {
			l := runaway.Limits{
				Deadline: time.Now().Add(time.Minute), Wall: time.Minute, Budget: runaway.Usage{Tokens: 1, Cost: 1},
				Iterations: 1, MaxIterations: 1, MaxConsecutiveFailures: 1, NoImprovement: 1,
			}
			for _, earlier := range reasons[:i] {
				earlier.relax(&l)
			}
			s := runaway.UnsafeMemStore()
			crash := &crashStore{Store: s}
			g := open(t, crash, l, &runaway.Options{Metered: runaway.MeterAll, KillFile: t.TempDir() + "/STOP"})
			e := runaway.Estimate{Tokens: 1, Cost: 1}
			beginWith(t, g, e)
			crash.crash() // so that nothing is found before the next Begin
			_ = g.Close(t.Context())
			time.Sleep(2 * time.Minute)
			g, err := runaway.Open(t.Context(), runID, l, s, metered)
			if err != nil {
				t.Fatal(err)
			}
			_, err = g.Begin(t.Context(), e)
			wantStop(t, err, want.reason)
			shut(t, g)
		}
	})
}
