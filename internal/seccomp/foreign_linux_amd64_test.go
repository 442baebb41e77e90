// SPDX-License-Identifier: Apache-2.0

package seccomp_test

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// foreign makes one call that does not belong to the native ABI. It must not return.
func foreign(kind string) int {
	switch kind {
	case "x32":
		unix.RawSyscall(0x40000000|39, 0, 0, 0)
	case "minus-one":
		unix.RawSyscall(^uintptr(0), 0, 0, 0)
	case "i386":
		int80()
	}
	return 0
}

// int80 executes mov $20, %eax; int $0x80; ret: getpid by the numbers of 32-bit x86.
func int80() {
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(err)
	}
	copy(page, []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3})
	if err := unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		panic(err)
	}
	code := unsafe.Pointer(&page[0])
	fn := unsafe.Pointer(&code) // a func value is a pointer to a code pointer
	(*(*func())(unsafe.Pointer(&fn)))()
}

// TestForeignCallsKill: the process ends with SIGSYS, which the host can see.
func TestForeignCallsKill(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"x32", "minus-one", "i386"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			err := start(t, "foreign", kind).Run()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok {
				t.Fatalf("error is %v, want an exit", err)
			}
			if status := exit.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGSYS {
				t.Errorf("wait status %v, want SIGSYS", exit)
			}
		})
	}
}
