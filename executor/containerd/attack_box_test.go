// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package containerd_test

import (
	"bufio"
	_ "embed"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/testenv"
)

//go:embed testdata/supervisor.py
var supervisorScript string

//go:embed testdata/traces.py
var tracesScript string

// Process 1 is out of reach, and nothing that a run writes can be taken for its report: the status is the one of the
// payload.
func TestSupervisorAttacked(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "python3")
	ex := usual(t)
	spec := executor.Spec{
		Args: []string{"/usr/bin/python3", "-c", supervisorScript}, Workspace: t.TempDir(),
		Limits: executor.Limits{Output: 1 << 30},
	}
	r, err := ex.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if r.Cause != executor.CauseExited || r.ExitCode != 7 {
		t.Errorf("the verdict is %v, %d: %s; %.300q", r.Cause, r.ExitCode, r.Detail, r.Stderr.String())
	}
	if strings.Contains(r.Stdout.String(), "got through") {
		t.Errorf("%.500q", r.Stdout.String())
	}
	if !strings.Contains(r.Stderr.String(), "nnnnnnnnnnnnnnnn") {
		t.Errorf("the forged records did not arrive as what they are, output: %.300q", r.Stderr.String())
	}
}

// What one box leaves another one does not find, with the same program and the same ids inside. On the host it does.
func TestBoxToBox(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "root")
	testenv.Need(t, "python3")
	const children, limit = "40", 60
	// In namespaces of its own, so that the control leaves nothing; the two programs are in the same ones.
	const control = `ip link set lo up; mount -t tmpfs none /dev/shm; mount -t tmpfs none /tmp
		/usr/bin/python3 -c "$0" leave 0 & sleep 1; /usr/bin/python3 -c "$0" find 0`
	outside := exec.CommandContext(t.Context(), "/usr/bin/unshare", "--ipc", "--net", "--mount", "--pid", "--fork",
		"--kill-child",
		"sh", "-c", control, tracesScript)
	pipe, err := outside.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := outside.Start(); err != nil {
		t.Fatal(err)
	}
	found := 0
	for lines := bufio.NewScanner(pipe); lines.Scan() && lines.Text() != "done"; {
		found++
	}
	_ = outside.Process.Kill()
	_ = outside.Wait()
	if found < 5 { // "up" and at least four traces
		t.Errorf("the control found %d traces", found)
	}
	ex := usual(t)
	var live output
	limits := executor.Limits{Processes: limit}
	spec := func(what string) executor.Spec {
		args := []string{"/usr/bin/python3", "-c", tracesScript, what, children}
		return executor.Spec{Args: args, Workspace: t.TempDir(), Limits: limits}
	}
	first := spec("leave")
	first.Stdout = &live
	stop := beside(t, ex, first)
	live.wait(t, "up")
	r, err := ex.Run(t.Context(), spec("find"))
	stop()
	if err != nil {
		t.Fatal(err)
	}
	if r.ExitCode != 0 || r.Stdout.String() != "done\n" {
		t.Errorf("%v %d, found %q, %q", r.Cause, r.ExitCode, r.Stdout.String(), r.Stderr.String())
	}
}

// Runs that exhaust what the conformance suite does not try. The cause is the kernel's, and boxes beside work as ever.
func TestExhaust(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "python3")
	ex := usual(t)
	small := executor.Limits{Memory: 64 << 20, Disk: 32 << 20, CPU: time.Minute, Wall: time.Minute}
	greedy := small
	greedy.Disk = 1 << 30 // more than the memory in which it is held
	for name, c := range map[string]struct {
		script string
		limits executor.Limits
		cause  executor.Cause
	}{
		"memory beyond swap": {"x = bytearray(256 << 20)", small, executor.CauseOutOfMemory},
		"System V memory": {`import ctypes
l = ctypes.CDLL(None)
l.shmat.restype = ctypes.c_void_p
for i in range(40):
	m = l.shmat(l.shmget(i + 1, 8 << 20, 0o1600), None, 0)
	ctypes.memset(ctypes.c_void_p(m), 1, 8 << 20)`, small, executor.CauseOutOfMemory},
		"memory files": {`import os
for fd in [os.memfd_create("x") for _ in range(40)]:
	os.write(fd, b"x" * (8 << 20))`, small, executor.CauseOutOfMemory},
		"many small processes that are worth as much as process 1": {`import os, time
open("/proc/self/oom_score_adj", "w").write("0")
for _ in range(60):
	if os.fork() == 0:
		x = bytearray(8 << 20)
		time.sleep(600)
time.sleep(600)`, small, executor.CauseOutOfMemory},
		"a disk larger than the memory": {`f = open("big", "wb", 0)
for _ in range(512):
	f.write(b"x" * (1 << 20))`, greedy, executor.CauseDiskFull},
		"files in shared memory": {`for i in range(100_000):
	open("/dev/shm/%d" % i, "w").close()`, small, executor.CauseDiskFull},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			spec := executor.Spec{Args: []string{"/usr/bin/python3", "-c", c.script}, Workspace: t.TempDir(), Limits: c.limits}
			r, err := ex.Run(t.Context(), spec)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if r.Cause != c.cause {
				t.Errorf("%s: %v %d instead of %v: %s %s", name, r.Cause, r.ExitCode, c.cause, r.Detail, r.Stderr.String())
			}
		}()
		for busy := true; busy; {
			mustExit(t, ex, executor.Spec{Args: []string{"sh", "-c", "exit 5"}}, 5)
			select {
			case <-done:
				busy = false
			default:
			}
		}
	}
}
