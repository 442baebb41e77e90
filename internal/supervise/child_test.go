// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise_test

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/supervise"
	"github.com/evoseal/containment/internal/testenv"
)

// child runs the job as a child of the test and returns its wait status and output.
func child(t *testing.T, job supervise.Job) (unix.WaitStatus, *supervise.Event, string) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pid, failed, err := supervise.StartChild(job, int(null.Fd()), int(w.Fd()), int(w.Fd()))
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	if failed != nil {
		return 0, failed, string(out)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
		t.Fatal(err)
	}
	return status, nil, string(out)
}

func TestChild(t *testing.T) {
	t.Parallel()
	status, failed, out := child(t, shell("cat /proc/self/oom_score_adj; ls /proc/self/fd | tr '\\n' ' '; exit 3"))
	if failed != nil || status.ExitStatus() != 3 || out != "1000\n0 1 2 3 " {
		t.Errorf("status %#x, failed %+v, output %q", status, failed, out)
	}
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil || strings.TrimSpace(string(own)) == "1000" {
		t.Errorf("our own score is %s, %v: it must not change with the child's", own, err)
	}
}

// What fails is told with its step, and leaves nothing to be waited for.
func TestChildFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*supervise.Job)
		step   supervise.Step
		errno  unix.Errno
	}{
		"program":   {func(j *supervise.Job) { j.Programs = []string{"/no/such"} }, supervise.StepExec, unix.ENOENT},
		"directory": {func(j *supervise.Job) { j.Dir = "/no/such" }, supervise.StepDir, unix.ENOENT},
		"limit":     {func(j *supervise.Job) { j.Rlimits = []supervise.Rlimit{{Resource: 99}} }, supervise.StepRlimit, unix.EINVAL},
		"filter":    {func(j *supervise.Job) { j.Filter = make([]byte, 8) }, supervise.StepSeccomp, unix.EINVAL},
	} {
		job := shell("")
		c.change(&job)
		if _, failed, _ := child(t, job); failed == nil || failed.Step != c.step || unix.Errno(failed.Errno) != c.errno {
			t.Errorf("%s: %+v", name, failed)
		}
	}
}

// The child borrows our memory until it executes its program; whatever else this process does meanwhile must not notice.
func TestChildrenWhileBusy(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			var keep [][]byte
			for {
				select {
				case <-stop:
					return
				default:
					keep = append(keep, make([]byte, 4<<10))
					if len(keep) > 1000 {
						keep = nil
					}
				}
			}
		})
	}
	for range 30 {
		if status, failed, _ := child(t, shell("exit 5")); failed != nil || status.ExitStatus() != 5 {
			t.Errorf("status %#x, failed %+v", status, failed)
		}
	}
	close(stop)
	busy.Wait()
}

func TestChildIdentity(t *testing.T) {
	testenv.Need(t, "root")
	job := shell("id -u; id -G; grep ^Cap /proc/self/status")
	job.UID, job.GID = freeUID, freeUID
	_, failed, out := child(t, job)
	want := "64911\n64911\n"
	if failed != nil || !strings.HasPrefix(out, want) || strings.Count(out, "\t0000000000000000\n") != 5 {
		t.Errorf("failed %+v, output %q", failed, out)
	}
}
