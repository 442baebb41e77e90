// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 && !arm64

package supervise

import "syscall"

// vforkFlags: without a call written in assembly the child needs a stack of its own, and so a memory of its own.
const vforkFlags = 0

//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func vfork(nr, a1, a2 uintptr) (pid, errno uintptr) {
	r, _, e := syscall.RawSyscall6(nr, a1, a2, 0, 0, 0, 0)
	if e == 0 && r == 0 {
		payloadMain()
	}
	return r, uintptr(e)
}
