// SPDX-License-Identifier: Apache-2.0

package seccomp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/seccomp"
)

// A filter cannot be taken off again, so everything that loads one happens in a copy of the test binary. The copy is
// told by its first argument what to do.
const childMark = "seccomp-test-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == childMark {
		os.Exit(child(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

type finding struct {
	Name string
	Got  unix.Errno
	Want unix.Errno
}

func child(task string, args []string) int {
	runtime.LockOSThread()
	o := seccomp.Options{Sockets: seccomp.SocketsAll}
	if task == "attack-strict" || task == "exec" {
		o = seccomp.Options{}
	}
	if err := load(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	switch task {
	case "attack", "attack-strict":
		return attack(o)
	case "foreign":
		return foreign(args[0])
	case "runtime":
		return goRuntime()
	case "exec":
		fmt.Fprintln(os.Stderr, unix.Exec(args[0], args, os.Environ()))
	}
	return 3
}

// load puts the filter on every thread of the process, as the payload of a run has it.
func load(o seccomp.Options) error {
	prog, err := seccomp.Assemble(o)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

func attack(o seccomp.Options) int {
	var all []finding
	for _, a := range seccomp.Attacks(o) {
		_, _, errno := unix.RawSyscall6(uintptr(a.Nr), uintptr(a.Args[0]), uintptr(a.Args[1]), uintptr(a.Args[2]),
			uintptr(a.Args[3]), uintptr(a.Args[4]), uintptr(a.Args[5]))
		all = append(all, finding{a.Name, errno, unix.Errno(a.Want)})
	}
	for family := range uintptr(46) {
		fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, family|0xdeadbeef<<32, unix.SOCK_STREAM, 0)
		if errno == 0 {
			unix.Close(int(fd))
		}
		if !allowedFamily(o, int(family)) {
			all = append(all, finding{fmt.Sprintf("socket family %d", family), errno, unix.EAFNOSUPPORT})
		} else if family != unix.AF_NETLINK { // which has no streams
			all = append(all, finding{fmt.Sprintf("socket family %d", family), errno, 0})
		}
	}
	_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	all = append(all, finding{"socketpair", errnoOf(err), 0})
	_, err = unix.MemfdCreate("x", 0)
	all = append(all, finding{"memfd_create", errnoOf(err), 0})
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		return 3
	}
	return 0
}

func errnoOf(err error) unix.Errno {
	if err == nil {
		return 0
	}
	errno, _ := errors.AsType[unix.Errno](err)
	return errno
}

func allowedFamily(o seccomp.Options, family int) bool {
	if o.Sockets != seccomp.SocketsAll {
		return false
	}
	switch family {
	case unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK:
		return true
	}
	return false
}

// goRuntime shows that goroutines, threads, timers, files and children of a Go program work under the filter.
func goRuntime() int {
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			unix.Getpid()
		})
	}
	wg.Wait()
	if out, err := exec.Command("/bin/echo", "ran").CombinedOutput(); err != nil || string(out) != "ran\n" {
		fmt.Fprintf(os.Stderr, "echo: %q, %v\n", out, err)
		return 1
	}
	return 0
}

// start runs a task in a copy of this program. Its path may lie in a directory that the caller cannot search.
func start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", append([]string{childMark}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestKernelRefuses: the kernel answers every row of the list as the row says, on every call that this machine has.
func TestKernelRefuses(t *testing.T) {
	t.Parallel()
	for _, task := range []string{"attack", "attack-strict"} {
		t.Run(task, func(t *testing.T) {
			t.Parallel()
			out, err := start(t, task).Output()
			if err != nil {
				t.Fatal(err)
			}
			var all []finding
			if err := json.Unmarshal(out, &all); err != nil {
				t.Fatal(err)
			}
			if len(all) < 120 {
				t.Errorf("only %d calls were tried", len(all))
			}
			for _, f := range all {
				if f.Got != f.Want {
					t.Errorf("%s: %v (%d), want %v", f.Name, f.Got, f.Got, f.Want)
				}
			}
		})
	}
}

// TestGoWorks: a Go program lives under the filter.
func TestGoWorks(t *testing.T) {
	t.Parallel()
	if err := start(t, "runtime").Run(); err != nil {
		t.Fatal(err)
	}
}
