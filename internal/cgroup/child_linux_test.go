// SPDX-License-Identifier: Apache-2.0

package cgroup_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/cgroup"
)

// What is measured here happens in copies of the test binary, which are told by their arguments what to do.
const childMark = "cgroup-test-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childMark {
		os.Exit(child(os.Args[2]))
	}
	os.Exit(m.Run())
}

func child(task string) int {
	switch task {
	case "hog":
		hog()
	case "child-hog": // its child dies, it does not
		_ = again("hog").Run()
		return 0
	case "burn":
		burn(80 * time.Millisecond)
	case "tree":
		return tree()
	case "bomb":
		bomb()
	case "sleep":
		fmt.Println("ready")
		time.Sleep(time.Minute)
	}
	return 0
}

// again starts this program once more, in the same group.
func again(task string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", childMark, task)
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	return cmd
}

func hog() {
	var keep [][]byte
	for range 1024 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		keep = append(keep, b)
	}
	runtime.KeepAlive(keep)
}

// burn uses so much processor time, however long that takes.
func burn(d time.Duration) {
	for {
		var u unix.Rusage
		if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil || time.Duration(u.Utime.Nano()+u.Stime.Nano()) >= d {
			return
		}
	}
}

// tree starts daemons, each in a session of its own, and waits until all of them are there.
func tree() int {
	for range 4 {
		cmd := again("sleep")
		out, err := cmd.StdoutPipe()
		if err != nil || cmd.Start() != nil {
			return 3
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			return 3
		}
	}
	fmt.Println("ready")
	time.Sleep(time.Minute)
	return 0
}

// bomb forks as fast as it can, in raw system calls, until it is killed.
func bomb() {
	for i := 0; ; i++ {
		if i == 3 {
			fmt.Println("ready")
		}
		_, _, _ = unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	}
}

// joins is a program for a shell: it writes "0" to every descriptor from 3 up to $1 and becomes the command behind it. A
// shell has one thread, as the process must have that joins; a Go program has several before its first line.
const joins = `last=$1; shift; fd=3
while [ $fd -le $last ]; do eval "echo 0 >&$fd" || exit 3; eval "exec $fd>&-"; fd=$((fd+1)); done
exec "$@"`

// start prepares a task in the group.
func start(t *testing.T, g *cgroup.Group, task string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := g.JoinFiles()
	cmd := exec.Command("/bin/sh", "-c", joins, "sh", strconv.Itoa(2+len(files)), self, childMark, task)
	cmd.ExtraFiles = files
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.WaitDelay = time.Second
	cmd.Stderr = t.Output()
	return cmd
}

// startReady starts a task and waits until it says that it is where it should be.
func startReady(t *testing.T, g *cgroup.Group, task string) *exec.Cmd {
	t.Helper()
	cmd := start(t, g, task)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // all of it: whoever else has the pipe would keep Wait waiting
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := g.Kill(ctx); err != nil {
			t.Error(err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the child said %q (%v)", line, err)
	}
	return cmd
}
