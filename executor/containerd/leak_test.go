// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
	"github.com/evoseal/containment/executor/internal/runtest"
)

var (
	stressRuns  = flag.Int("stress.runs", 20, "runs in TestNothingIsLeft; make stress uses 1,000")
	stressKills = flag.Int("stress.kills", 3, "host programs and daemons killed; make stress uses 50")
)

// Runs that end in every way leave nothing, in boxes that were made for them and in boxes that waited.
func TestNothingIsLeft(t *testing.T) {
	daemon(t)
	stay := runtest.Children(t) // the daemon
	for name, warm := range map[string]containerd.Warm{"cold": {}, "warm": {Size: 1}} {
		at := daemon(t)
		ex := at.open(t, containerd.Config{Root: containerd.Root{Reads: hostReads}, Warm: warm})
		cancelled(t, ex, *stressRuns/4)
		if warm.Size == 0 {
			runtest.NothingIsLeft(t, ex, at.dir, *stressRuns, stay...) // closes it
		} else if err := ex.Close(); err != nil {
			t.Error(err)
		}
		if found := append(census(t, at), dirtyIDs(t, at)...); len(found) > 0 {
			t.Errorf("%s: left behind: %q", name, found)
		}
	}
}

// cancelled makes runs that are cancelled at any time, in creation and destruction above all.
func cancelled(t *testing.T, ex executor.Executor, runs int) {
	t.Helper()
	spec := executor.Spec{Args: []string{"sh", "-c", "sleep 0.1"}, Workspace: t.TempDir()}
	for range runs {
		ctx, cancel := context.WithTimeout(t.Context(), rand.N(500*time.Millisecond))
		r, err := ex.Run(ctx, spec)
		cancel()
		if err != nil || r.Cause != executor.CauseCancelled && !r.OK() {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// Daemons that are killed and started anew while boxes are made, work, and are destroyed: every failure has a type, and
// the next executor finds nothing that stays.
func TestDaemonsKilled(t *testing.T) {
	t.Parallel()
	d, at := ownDaemon(t)
	for round := range *stressKills {
		program := round%2 == 1 // a host program dies as well
		if program {
			kill(t, at, rand.N(300*time.Millisecond))
		}
		ex := at.open(t, containerd.Config{Root: containerd.Root{Reads: hostReads}})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { survive(t, ex) })
		}
		time.Sleep(rand.N(600 * time.Millisecond))
		d.Kill()
		if err := d.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if err := ex.Close(); err != nil {
			t.Error(err)
		}
		if err := at.open(t, containerd.Config{}).Close(); err != nil {
			t.Error(err)
		}
		if found := census(t, at); len(found) > 0 {
			t.Errorf("round %d: left behind: %q", round, found)
		}
	}
}

// survive makes a run that a daemon's death may end with an error of the promised kinds, but never with a wrong result.
func survive(t *testing.T, ex executor.Executor) {
	spec := executor.Spec{Args: []string{"sh", "-c", "sleep 0.2; exit 6"}, Workspace: t.TempDir()}
	r, err := ex.Run(t.Context(), spec)
	_, setup := errors.AsType[*executor.SetupError](err)
	_, cleanup := errors.AsType[*executor.CleanupError](err)
	switch {
	case err == nil && r.ExitCode != 6:
		t.Errorf("%+v", fmt.Sprintf("%v %d %s", r.Cause, r.ExitCode, r.Detail))
	case err != nil && !setup && !cleanup && !errors.Is(err, executor.ErrLost):
		t.Errorf("not one of the promised errors: %v", err)
	}
}
