// SPDX-License-Identifier: Apache-2.0

package runtest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
)

// hostVariable marks a re-executed test binary as a host program; its value is the state directory.
const hostVariable = "CONTAINMENT_TEST_STATE"

// Open makes an executor with a state directory.
type Open func(ctx context.Context, state string) (Executor, error)

// Main is what TestMain calls first. In a re-executed test binary it is the host program of [HostKilled], which keeps runs
// under way until it is killed. In any other it lets more tests run at a time than there are processors, unless the caller
// has chosen a number: most of them wait for something most of the time.
func Main(open Open) {
	if state := os.Getenv(hostVariable); state != "" {
		host(open, state)
	}
	older()
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen && flag.Set("test.parallel", "8") != nil {
		os.Exit(2)
	}
}

// host never returns.
func host(open Open, state string) {
	ctx := context.Background()
	ex, err := open(ctx, state)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	workspace := filepath.Join(state, "workspace")
	scripts := []string{"exit 0", daemons + "exit 1", daemons + "sleep 300", "head -c 100000 /dev/zero"}
	fmt.Println("ready")
	for i := 0; ; i++ {
		script := scripts[i%len(scripts)]
		limits := executor.Limits{Wall: 50 * time.Millisecond}
		go func() {
			_, _ = ex.Run(ctx, executor.Spec{Args: []string{"sh", "-c", script}, Workspace: workspace, Limits: limits})
		}()
		time.Sleep(10 * time.Millisecond)
	}
}

// HostKilled kills host programs at random moments, in the middle of several runs. They leave nothing that the next
// executor does not remove, and no process for longer than that takes.
func HostKilled(t *testing.T, open Open, kills int) {
	t.Helper()
	state := StateDir(t)
	if err := os.Mkdir(filepath.Join(state, "workspace"), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	swept := 0
	for range kills {
		killOne(t, self, state)
		leases, _ := filepath.Glob(filepath.Join(state, "leases", "*"))
		swept += len(leases)
		ex, err := open(t.Context(), state)
		if err != nil {
			t.Fatal(err)
		}
		TracesGone(t, state)
		if err := ex.Close(); err != nil {
			t.Error(err)
		}
	}
	if swept == 0 {
		t.Error("no killed host program left a lease: the test did not hit a run")
	}
	t.Logf("%d leases swept", swept)
}

func killOne(t *testing.T, self, state string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = []string{hostVariable + "=" + state, "PATH=" + executor.DefaultPath, "TMPDIR=" + os.TempDir()}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var word string
	if _, err := fmt.Fscanln(out, &word); err != nil || word != "ready" {
		t.Fatalf("host program: %q, %v", word, err)
	}
	time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}
