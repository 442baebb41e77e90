// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"runtime"
	"syscall"
	"unsafe"
)

// This file makes processes without executing anything: trees of a hundred processes would otherwise cost a hundred
// starts of a Go program. The child has only the thread that forked, so no Go code that can grow its stack, allocate or
// meet the scheduler may run in it: everything in the child is nosplit and made of raw system calls, and all it needs is
// prepared before.

// childPlan says what a forked child does. Every child ends by itself: an attack that is not contained must not outlive
// the suite for long.
type childPlan struct {
	detach    bool             // own session, forked twice, so that the leader is not its parent
	deaf      bool             // SIGTERM, SIGHUP and every other signal that can be blocked is
	closeStd  bool             // holds none of the leader's standard streams
	readyFD   int              // gets one byte when the child is up; 0: nobody waits
	burnCPU   syscall.Timespec // uses this much processor time
	touch     uintptr          // writes to every page of this much memory
	touchedFD int              // gets one byte when it has; 0: nobody waits
	heldFD    int              // and then it waits for the end of this pipe
	releaseFD int              // the parent's end of that
	sleep     syscall.Timespec // and then waits
	burned    syscall.Timespec // scratch of the child
	allMask   uint64
	byteOut   byte
}

// fork starts one child that follows the plan. The parent reaps the intermediate process of a detached one.
func (c *childPlan) fork() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.allMask = ^uint64(0)
	var old uint64
	sigmask(&c.allMask, &old) // nothing may interrupt the child before it is on its own
	pid, errno := rawFork()
	if pid == 0 && errno == 0 {
		childMain(c, &old)
	}
	sigmask(&old, nil)
	if errno != 0 {
		return errno
	}
	if c.detach {
		_, _ = syscall.Wait4(int(pid), nil, 0, nil)
	}
	return nil
}

//go:nosplit
//go:norace
func rawFork() (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	return pid, errno
}

//go:nosplit
//go:norace
func sigmask(set, old *uint64) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, 2, // SIG_SETMASK
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
}

// childMain never returns.
//
//go:nosplit
//go:norace
func childMain(c *childPlan, old *uint64) {
	if c.detach {
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
		if pid, errno := rawFork(); pid != 0 || errno != 0 {
			rawExit(0)
		}
	}
	if !c.deaf {
		sigmask(old, nil)
	}
	if c.closeStd {
		for fd := uintptr(0); fd < 3; fd++ {
			_, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
		}
	}
	if c.readyFD != 0 {
		_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(c.readyFD), uintptr(unsafe.Pointer(&c.byteOut)), 1)
		_, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(c.readyFD), 0, 0)
	}
	childBurn(c)
	childTouch(c)
	childHeld(c)
	_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&c.sleep)), 0, 0)
	rawExit(0)
}

//go:nosplit
//go:norace
func childBurn(c *childPlan) {
	const processCPU = 2 // CLOCK_PROCESS_CPUTIME_ID
	for c.burnCPU.Sec != 0 || c.burnCPU.Nsec != 0 {
		_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processCPU, uintptr(unsafe.Pointer(&c.burned)), 0)
		if c.burned.Sec > c.burnCPU.Sec || c.burned.Sec == c.burnCPU.Sec && c.burned.Nsec >= c.burnCPU.Nsec {
			return
		}
	}
}

// childTouch lets the kernel touch the pages: MAP_POPULATE needs no pointer into the new memory.
//
//go:nosplit
//go:norace
func childTouch(c *childPlan) {
	if c.touch == 0 {
		return
	}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_MMAP, 0, c.touch, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_POPULATE, ^uintptr(0), 0)
	if errno != 0 {
		rawExit(3)
	}
}

// childHeld keeps what it has until the parent has seen that all the others have theirs.
//
//go:nosplit
//go:norace
func childHeld(c *childPlan) {
	if c.touchedFD == 0 {
		return
	}
	out := uintptr(unsafe.Pointer(&c.byteOut))
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(c.touchedFD), out, 1)
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(c.touchedFD), 0, 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(c.releaseFD), 0, 0) // or there would be no end
	_, _, _ = syscall.RawSyscall(syscall.SYS_READ, uintptr(c.heldFD), out, 1)
}

//go:nosplit
//go:norace
func rawExit(code uintptr) {
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, code, 0, 0)
	}
}
