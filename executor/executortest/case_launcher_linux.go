// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/evoseal/containment/executor"
)

// launcherCases attack what stands directly around a run: whoever started it, and the kernel objects that have no name in
// any file system.
func launcherCases() []Case {
	return []Case{
		attack("launcher-fds", "whoever starts the payload holds descriptors, and /proc opens them again",
			executor.UnprivilegedUser, launcherFds),
		attack("sysv-host", "System V memory is found by a number, and lies in no file system that a rule could name",
			executor.WorkspaceIsolated, sysvHost),
	}
}

// launcherFds keeps a secret open in this process, and lets the payload look through the descriptors of every process that
// it descends from as far as it can see them.
func launcherFds(s *scene) error {
	secret := randomHex(16)
	path, err := s.plant("held", secret, 0o600)
	if err != nil {
		return s.fault(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return s.fault(err)
	}
	defer f.Close()
	if err := os.Remove(path); err != nil { // what is left is the descriptor
		return s.fault(err)
	}
	res, err := s.reach(s.spec("launcher", job{}))
	if err != nil {
		return err
	}
	if strings.Contains(res.Stdout.String(), secret) {
		return s.breach("the payload read a file that its host holds open")
	}
	if opened := answers(res.Stdout.Bytes(), "opened"); len(opened) > 0 {
		return s.breach("the payload opened descriptors of the process that started it: %q", opened)
	}
	return nil
}

// sysvHost makes a segment that everybody may write.
func sysvHost(s *scene) error {
	key, err := strconv.ParseUint(s.tag[:7], 16, 32)
	if err != nil {
		return s.fault(err)
	}
	id, _, errno := syscall.Syscall(syscall.SYS_SHMGET, uintptr(key), shmSize, ipcCreate|0o666)
	if errno != 0 {
		return s.fault(errno)
	}
	defer removeSegment(uintptr(key))
	at, _, errno := syscall.Syscall(syscall.SYS_SHMAT, id, 0, 0)
	if errno != 0 {
		return s.fault(errno)
	}
	defer syscall.Syscall(syscall.SYS_SHMDT, at, 0, 0)
	memory := unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), shmSize)
	copy(memory, "original")
	if _, err := s.reach(s.spec("shm-leave", job{N: int64(key), Text: "changed!"})); err != nil {
		return err
	}
	if got := string(memory[:8]); got != "original" {
		return s.breach("the payload wrote %q into memory of the host", got)
	}
	return nil
}
