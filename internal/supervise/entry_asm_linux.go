// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package supervise

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// entryPC is the address of the first instruction of our init.
var entryPC uintptr

// initMain is our init behind a wrapper: it maps the image that the server has laid out, and does what is in there. No
// runtime was started, so everything here obeys the rules of fork.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func initMain() {
	size, _, e := syscall.RawSyscall(unix.SYS_LSEEK, fdImage, 0, unix.SEEK_END)
	if e != 0 {
		quit(126)
	}
	const writable = unix.PROT_READ | unix.PROT_WRITE
	const private = unix.MAP_PRIVATE | unix.MAP_FIXED_NOREPLACE
	at, _, e := syscall.RawSyscall6(unix.SYS_MMAP, imageBase, size, writable, private, fdImage, 0)
	if e != 0 || at != imageBase {
		quit(126)
	}
	live(*(**program)(unsafe.Pointer(&at)))
}

// initMain is called from assembly only, which tools do not read.
var _ = initMain
