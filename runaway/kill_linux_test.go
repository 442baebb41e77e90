// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoseal/containment/runaway"
)

var stressRuns = flag.Int("stress.runs", 2,
	"runs of TestIterationCapClosesThreatModel4 that are killed again and again")

// childRole tells a child of these tests what to do; it runs before any test.
const childRole = "RUNAWAY_TEST_ROLE"

func init() {
	role, ok := os.LookupEnv(childRole)
	if !ok {
		return
	}
	words := strings.Fields(role)
	if err := map[string]func([]string) error{"loop": childLoop, "snapshot": childSnapshot,
		"full": childFull}[words[0]](words[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startChild starts this program in a role. Its standard output is the reader.
func startChild(t *testing.T, role ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childRole+"="+strings.Join(role, " "))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// killed reports whether a child ended by SIGKILL; any other failure ends the test.
func killed(t *testing.T, err error) bool {
	t.Helper()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
			return true
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return false
}

const killCap = 20

// childLoop works until the governor says that it is enough. Each step leaves one byte in a file as soon as it
// begins. After so many steps it hangs, so that only a kill gets the loop any further; 0 is never.
func childLoop(args []string) error {
	s, err := runaway.FileStore(args[0])
	if err != nil {
		return err
	}
	ctx := context.Background()
	g, err := runaway.Open(ctx, runID, runaway.Limits{MaxIterations: killCap, MaxConsecutiveFailures: 99}, s, nil)
	if err != nil {
		if errors.Is(err, runaway.ErrStopped) {
			return nil
		}
		return err
	}
	started, err := os.OpenFile(filepath.Join(args[0], "started"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	hangs, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for it, err := range g.Iterations(ctx, runaway.Estimate{}) {
		if err != nil {
			break
		}
		if _, err := started.Write([]byte{'x'}); err != nil {
			return err
		}
		if hangs--; hangs == 0 {
			select {}
		}
		time.Sleep(time.Duration(rand.N(2000)) * time.Microsecond)
		if rand.N(2) == 0 {
			_ = it.End(fresh(it.Number()))
		}
	}
	return errors.Join(started.Close(), g.Close(ctx))
}

// TestIterationCapClosesThreatModel4: a process that is killed at random points, under a parent that starts it again
// and again, begins exactly as many iterations as the cap allows.
func TestIterationCapClosesThreatModel4(t *testing.T) {
	t.Parallel()
	for run := range *stressRuns {
		dir := filepath.Join(t.TempDir(), strconv.Itoa(run))
		kills, finished := 0, false
		for begun := 0; !finished; {
			if kills > 10*killCap {
				t.Fatalf("%d kills, and it still goes on", kills)
			}
			hangs := 0
			if kills < 3 {
				hangs = 1 + rand.N(4)
			}
			cmd, out := startChild(t, "loop", dir, strconv.Itoa(hangs))
			if _, err := out.ReadString('\n'); err == nil && (hangs > 0 || rand.N(8) != 0) {
				time.Sleep(time.Duration(rand.N(6000)) * time.Microsecond)
				_ = cmd.Process.Kill()
			}
			finished = !killed(t, cmd.Wait())
			kills += 1 - btoi(finished)
			started, err := os.ReadFile(filepath.Join(dir, "started"))
			if err != nil || len(started) > killCap || len(started) < begun {
				t.Fatalf("%d started after %d kills, before %d: %v", len(started), kills, begun, err)
			}
			begun = len(started)
		}
		s, err := runaway.FileStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		stop := refused(t, s, runaway.Limits{MaxIterations: killCap, MaxConsecutiveFailures: 99}, nil)
		if stop.Reason != runaway.ReasonIterations || stop.Iteration != killCap {
			t.Errorf("after %d kills: %v", kills, stop)
		}
		if kills < 3 {
			t.Errorf("%d kills: this proves nothing", kills)
		}
	}
}

const (
	snapshotSteps = 3
)

// childSnapshot works with a snapshot after nearly every iteration, and kills itself before the call with that
// number. It says on standard output what it was told has happened.
func childSnapshot(args []string) error {
	at, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	c := &calls{before: func(n int, _ string) error {
		if n == at {
			return syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		}
		return nil
	}}
	ctx := context.Background()
	l := runaway.Limits{MaxConsecutiveFailures: 99, Budget: runaway.Usage{Tokens: 100}, MaxConcurrent: 2}
	g, err := runaway.Open(ctx, runID, l, c.store(args[0]), &runaway.Options{Metered: runaway.MeterTokens})
	if err != nil {
		return err
	}
	runaway.SnapshotEvery(g, 3)
	long, err := g.Begin(ctx, runaway.Estimate{Tokens: 20})
	if err != nil {
		return err
	}
	fmt.Println("begun")
	for n := range snapshotSteps {
		it, err := g.Begin(ctx, runaway.Estimate{Tokens: 5})
		if err != nil {
			return err
		}
		fmt.Println("begun")
		if err := errors.Join(it.Spend(runaway.Usage{Tokens: 5}), it.End(rejected)); err != nil {
			return err
		}
		fmt.Println("ended", n)
	}
	return errors.Join(long.End(rejected), g.Close(ctx))
}

// TestKilledInASnapshot kills a process before each call to the file system, those of all snapshots included. Nothing
// that it was told has happened is forgotten.
func TestKilledInASnapshot(t *testing.T) {
	t.Parallel()
	l := runaway.Limits{MaxConsecutiveFailures: 99, Budget: runaway.Usage{Tokens: 100}, MaxConcurrent: 2}
	kills := 0
	for at := 0; ; at++ {
		dir := filepath.Join(t.TempDir(), strconv.Itoa(at))
		cmd, out := startChild(t, "snapshot", dir, strconv.Itoa(at))
		var begun, ended int
		for {
			line, err := out.ReadString('\n')
			if err != nil {
				break
			}
			begun += btoi(strings.HasPrefix(line, "begun"))
			ended += btoi(strings.HasPrefix(line, "ended"))
		}
		if !killed(t, cmd.Wait()) {
			if kills < 30 {
				t.Errorf("only %d calls", kills)
			}
			return
		}
		kills++
		s, err := runaway.FileStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		g := open(t, s, l, &runaway.Options{Metered: runaway.MeterTokens})
		st := g.Status()
		spent := int64(5 * ended)
		if begun > 0 {
			spent += 20 // the one that never ended
		}
		if st.Attempts < begun || st.Attempts > begun+1 || st.Streak != st.Attempts || st.Spent.Tokens < spent ||
			st.Spent.Tokens > spent+20 {
			t.Errorf("killed before call %d: %d begun and %d ended, found %+v", at, begun, ended, st)
		}
		shut(t, g)
	}
}
