// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
)

const (
	supervisorKill = "supervisor-kill"
	// superviseMarker among the arguments makes Run start one run and wait to be killed. Its tag follows.
	superviseMarker = "executortest-supervise-v1"
)

// supervised is the child's half of supervisor-kill: if this process is that child it starts a tree in a run, and never
// comes back.
func supervised(t *testing.T, newExecutor func(*testing.T) executor.Executor) bool {
	t.Helper()
	args := flag.Args()
	i := slices.Index(args, superviseMarker)
	if i < 0 || i+1 >= len(args) {
		return false
	}
	s, err := newScene(t.Context(), supervisorKill, newExecutor(t), false)
	if err != nil {
		t.Fatal(err)
	}
	s.tag = args[i+1]
	if _, err := s.hold("forks", forkJob("detach deaf close", 3), nil); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nready %q\nready %q\n", s.dir, template.dir)
	time.Sleep(deadline)
	t.Fatal("nobody killed this process")
	return true
}

// judgeSupervisorKill is not a Case, because it needs an executor in another process.
func judgeSupervisorKill(t *testing.T, newExecutor func(*testing.T) executor.Executor) {
	t.Helper()
	c := Case{Name: supervisorKill, Why: "runs that nobody watches any more must die", Needs: executor.TreeKilled}
	parent, _, _ := strings.Cut(t.Name(), "/"+supervisorKill)
	c.Check = func(ctx context.Context, _ executor.Executor) error {
		return watched(ctx, c.Name, func(ctx context.Context) error { return killSupervisor(ctx, parent, buryTime) })
	}
	// The executor is made first and lives on: its next start-up sweep is the library's own affair and not needed here.
	judge(t, c, newExecutor(t))
}

// buryTime is how long a tree may outlive its supervisor. The contract says a second; the rest is for a busy machine.
const buryTime = 5 * time.Second

// killSupervisor starts the test again, waits for its tree, kills it and looks what is left after a while.
func killSupervisor(ctx context.Context, test string, wait time.Duration) error {
	tag := randomHex(12)
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.run="+exactly(test), "-test.count=1", "-test.timeout=120s",
		superviseMarker, tag)
	cmd.Args[0] = os.Args[0]
	var out liveBuffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second
	if err := cmd.Start(); err != nil {
		return inconclusive(supervisorKill, "%w", err)
	}
	defer removeDirs(&out)
	up := eventually(2*patience, func() bool { return len(answers(out.Bytes(), "ready")) > 0 })
	running := len(payloadsOf(tag))
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	if !up || running < 2 {
		return inconclusive(supervisorKill, "the supervisor did not start a tree: %d processes, output %.600q",
			running, out.Bytes())
	}
	left := waitGone(ctx, tag, wait)
	for _, p := range left {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	if len(left) > 0 {
		detail := fmt.Sprintf("%v after the supervisor was killed, %d processes live: %v", wait, len(left), left)
		return &Breach{Case: supervisorKill, Detail: detail}
	}
	return ctx.Err()
}

// payloadsOf leaves out the supervisor itself, which has the tag among its arguments too.
func payloadsOf(tag string) []process {
	return slices.DeleteFunc(tagged(tag), func(p process) bool { return slices.Contains(p.args, superviseMarker) })
}

// exactly makes the pattern that selects one test by its full name.
func exactly(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// removeDirs removes what the killed process could not: its scene. Only a directory that this suite made qualifies.
func removeDirs(out *liveBuffer) {
	for _, dir := range answers(out.Bytes(), "ready") {
		if fi, err := os.Lstat(dir); err == nil && fi.IsDir() && strings.Contains(dir, "executortest-") {
			_ = forceRemove(dir)
		}
	}
}
