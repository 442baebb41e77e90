// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/internal/testenv"
)

// Process 1 answers for the run and has the run's uid. Nothing that the kernel lets a process do to another one of the same
// uid may reach it: neither its memory, descriptors and environment, nor its signals, limits and priority.
func TestInitIsOutOfReach(t *testing.T) {
	testenv.Need(t, "python3")
	ex := newExecutor(t, bubblewrap.Config{})
	script := `
import os, resource, signal
def attempt(name, f, *args):
    try: f(*args)
    except OSError: return
    print("did", name)
for name in ("mem", "environ", "maps", "auxv", "stack", "syscall", "fd/3", "root/etc/passwd", "cwd/x", "exe"):
    attempt(name, lambda n: open("/proc/1/" + n, "rb").read(1), name)
attempt("fd", os.listdir, "/proc/1/fd")
attempt("limit", resource.prlimit, 1, resource.RLIMIT_CPU, (0, 0))
attempt("affinity", os.sched_setaffinity, 1, {0})
attempt("priority", os.setpriority, os.PRIO_PROCESS, 1, 19)
attempt("priority of all", os.setpriority, os.PRIO_USER, os.getuid(), 19)
attempt("scheduler", os.sched_setscheduler, 1, os.SCHED_BATCH, os.sched_param(0))
for number in range(1, 65):
    if number != 32 and number != 33:
        try: os.kill(1, number)
        except OSError: pass
attempt("pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(1), signal.SIGKILL))
print("cmdline", open("/proc/1/cmdline").read().strip("\0").startswith("/proc/self/fd/"))
print("verdict")`
	spec := executor.Spec{Args: []string{"/usr/bin/python3", "-c", script + "\nraise SystemExit(7)"}, Workspace: t.TempDir()}
	r := mustRun(t, ex, spec)
	// A signal that cannot do anything to process 1 is "sent" all the same.
	if got := r.Stdout.String(); got != "did pidfd\ncmdline True\nverdict\n" && got != "cmdline True\nverdict\n" || r.ExitCode != 7 {
		t.Errorf("output %q, cause %v, exit %d, stderr %q", got, r.Cause, r.ExitCode, r.Stderr)
	}
}
