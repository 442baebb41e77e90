// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/internal/supervise"
)

const hostMarker = "CONTAINMENT_TEST_HOST"

// TestMain turns the re-executed test binary into a host program that starts a run and waits to be killed.
func TestMain(m *testing.M) {
	if os.Getenv(hostMarker) == "" {
		os.Exit(m.Run())
	}
	null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	job := shell(`setsid sh -c 'trap "" TERM HUP; echo $$; sleep 100; sleep 100' & trap "" TERM HUP; echo $$; sleep 100; sleep 100`)
	server := new(supervise.Server)
	_, err := server.Start(job, supervise.Files{Stdin: null, Stdout: os.Stdout, Stderr: null, Lock: null})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	time.Sleep(time.Minute)
}

// After a SIGKILL of the host program, which gives it no chance to do anything, nothing of the run lives on.
func TestHostKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{hostMarker + "=1", "PATH=/usr/bin:/bin"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []string
	for in := bufio.NewScanner(out); len(pids) < 2 && in.Scan(); {
		pids = append(pids, strings.TrimSpace(in.Text()))
	}
	if len(pids) != 2 {
		t.Fatalf("pids %q, want leader and daemon", pids)
	}
	guard := parent(t, pids)
	pids = append(pids, guard, parent(t, []string{guard}))
	for _, pid := range pids {
		if _, err := os.Stat("/proc/" + pid); err != nil {
			t.Errorf("process %s should be alive before the kill: %v", pid, err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	const limit = 5 * time.Second // a second is what the contract says, and the rest is for a busy machine
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		alive := living(pids)
		if len(alive) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("alive %v after the kill: %q", limit, alive)
		}
	}
}

// parent returns the parent of the first of the processes whose parent is not one of them.
func parent(t *testing.T, pids []string) string {
	t.Helper()
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if !slices.Contains(pids, f[1]) {
			return f[1]
		}
	}
	t.Fatal("no parent outside")
	return ""
}

// living returns the pids that are neither gone nor zombies that somebody else's init has to reap.
func living(pids []string) (alive []string) {
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		if i := strings.LastIndexByte(string(stat), ')'); i < 0 || !strings.HasPrefix(string(stat[i+1:]), " Z") {
			alive = append(alive, pid)
		}
	}
	return alive
}
