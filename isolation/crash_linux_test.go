// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/isolation"
)

var (
	kills     = flag.Int("isolation.kills", 1, "how often the host program is killed at each point of a step")
	childHome = flag.String("isolation.child", "", "for child processes: the directory of the scene")
	childAt   = flag.String("isolation.at", "", "for child processes: where to die; empty: go on until killed")
	childBad  = flag.Bool("isolation.bad", false, "for child processes: propose what does not pass")
)

// points are where a step can be killed, in order; those after "kept" leave the new tree, all others the old one.
var (
	keepPoints = []string{"begin", "propose", "plan", "checkpoint", "apply", "applying", "seal", "run", "running", "verify",
		"judge", "settle", "kept-checkpoint", "kept", "kept-pinned", "end"}
	restorePoints = []string{"restoring", "restored", "end"}
)

func dieNow() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }

// TestKilledChild is the program that is killed. As an ordinary test it proves that the program would come to its end.
func TestKilledChild(t *testing.T) {
	home := *childHome
	if home == "" {
		s := setScene(t)
		home = s.home
	}
	s := sceneIn(t, home)
	if *childAt == "real" {
		ex, err := rlimit.New(t.Context(), rlimit.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer ex.Close()
		real := realScene(t, "rlimit", ex, nil)
		s.hooks, s.config.Executors, s.config.Run = real.hooks, real.config.Executors, real.config.Run
		s.config.Run.Limits.Wall = 5 * time.Minute
	}
	s.hooks.At = func(point string) {
		if point == *childAt {
			dieNow()
		}
	}
	b, _ := s.open()
	for n := 0; ; n++ {
		p := s.good(fmt.Sprint(b.Status().Governor.Attempts))
		if *childBad || *childHome != "" && *childAt == "" && n%2 == 1 {
			p = s.bad(fmt.Sprint(b.Status().Governor.Attempts))
		}
		if _, err := b.Try(context.Background(), p); err != nil {
			t.Fatal(err)
		}
		if *childHome == "" {
			return
		}
		if *childAt != "" {
			t.Fatalf("nothing came to the point %q", *childAt)
		}
	}
}

// child starts the program on a scene.
func (s *scene) child(at string, bad bool) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$", "-isolation.child="+s.home, "-isolation.at="+at,
		fmt.Sprintf("-isolation.bad=%v", bad))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (s *scene) mustBeKilled(cmd *exec.Cmd, output []byte, err error) {
	s.t.Helper()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err == nil || !ok || ws.Signal() != syscall.SIGKILL {
		s.t.Fatalf("the program was not killed: %v\n%s", err, output)
	}
}

// TestKillAtEveryPoint: the host program is killed wherever a step can be. The next Open finds the tree equal to the
// one that was accepted last, the iteration is charged, and the run goes on.
func TestKillAtEveryPoint(t *testing.T) {
	t.Parallel()
	for _, bad := range []bool{false, true} {
		points := keepPoints
		if bad {
			points = restorePoints
		}
		for _, point := range points {
			t.Run(fmt.Sprintf("%s bad=%v", point, bad), func(t *testing.T) {
				t.Parallel()
				for range *kills {
					killAt(t, point, bad)
				}
			})
		}
	}
}

func killAt(t *testing.T, point string, bad bool) {
	s := setScene(t)
	before := s.state()
	cmd := s.child(point, bad)
	output, err := cmd.CombinedOutput()
	s.mustBeKilled(cmd, output, err)

	b, closeAll := s.open()
	defer closeAll()
	accepted := !bad && slices.Index(keepPoints, point) >= slices.Index(keepPoints, "kept")
	if diff := cmp.Diff(before, s.state()); (diff == "") == accepted {
		t.Fatalf("accepted: %v; the tree:\n%s", accepted, diff)
	}
	begun := 1
	if point == "begin" {
		begun = 0
	}
	if st := b.Status().Governor; st.Attempts != begun || len(st.Open) != 0 || st.Accepted != 0 && !accepted {
		t.Errorf("the governor counts %d iterations, %d accepted, open: %v", st.Attempts, st.Accepted, st.Open)
	}
	v, err := b.Try(context.Background(), s.good("after"))
	if err != nil || !v.Accepted || v.Iteration != begun+1 {
		t.Errorf("the run does not go on: %+v, %v", v, err)
	}
}

// TestKillAtAnyMoment kills a program that steps and steps, between the points as well: inside the store, the journal,
// the writing of the tree.
func TestKillAtAnyMoment(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	attempts := 0
	for n := range 5 * *kills {
		cmd := s.child("", false)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100*time.Millisecond + rand.N(150*time.Millisecond))
		_ = cmd.Process.Kill()
		err := cmd.Wait()
		s.mustBeKilled(cmd, nil, err)

		b, closeAll := s.open()
		st := b.Status()
		verdicts := len(s.records(isolation.RecordVerdict))
		if st.Governor.Attempts < attempts || st.Governor.Attempts < verdicts || len(st.Governor.Open) > 0 {
			t.Fatalf("kill %d: %d iterations after %d, and %d verdicts", n, st.Governor.Attempts, attempts, verdicts)
		}
		attempts = st.Governor.Attempts
		v, err := b.Try(context.Background(), s.good(fmt.Sprint("after ", n)))
		if err != nil || !v.Accepted {
			t.Fatalf("kill %d: the run does not go on: %+v, %v", n, v, err)
		}
		attempts++
		closeAll()
	}
}

// TestPowerCut: records that are not durable may be lost with the machine, from the end. Whatever is left of the log of
// a step, the next Open finds the accepted tree.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	before := s.state()
	cmd := s.child("judge", false)
	output, err := cmd.CombinedOutput()
	s.mustBeKilled(cmd, output, err)
	path := filepath.Join(s.config.StateDir, "isolation-run.journal")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	intent := bytes.Index(whole, []byte(`"phase":"applying"`))
	if intent < 0 {
		t.Fatalf("the log does not say that the step wrote:\n%s", whole)
	}
	variant := s.state()
	if variant == before {
		t.Fatal("nothing was written")
	}
	for cut := len(whole); cut > intent; cut = bytes.LastIndexByte(whole[:cut-1], '\n') + 1 {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		s.write("src/a.txt", "alpha 0\n") // as the variant had it
		_, closeAll := s.open()
		closeAll()
		if diff := cmp.Diff(before, s.state()); diff != "" {
			t.Fatalf("%d of %d bytes are left:\n%s", cut, len(whole), diff)
		}
	}
}
