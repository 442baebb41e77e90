// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"syscall"
	"unsafe"
)

// rootPayloads are the payloads that look for traces of the host and of earlier runs.
func rootPayloads() map[string]func(*payload) {
	return map[string]func(*payload){"inodes": inodesPayload, "shm-leave": shmPayload, "shm-find": shmPayload}
}

// inodesPayload identifies whatever it sees under the given names.
func inodesPayload(p *payload) {
	p.reached()
	for _, path := range p.job.Paths {
		if id := inodeOf(path); id != "none" {
			p.say("inode", id+" "+path)
		}
	}
}

// shmPayload attaches the segment; with text it makes it first and leaves the text there.
func shmPayload(p *payload) {
	p.reached()
	flags := uintptr(0o666)
	if p.job.Text != "" {
		flags |= ipcCreate
	}
	id, _, errno := syscall.Syscall(syscall.SYS_SHMGET, uintptr(p.job.N), shmSize, flags)
	if errno != 0 {
		p.sayErr("shm", errno)
		return
	}
	at, _, errno := syscall.Syscall(syscall.SYS_SHMAT, id, 0, 0)
	if errno != 0 {
		p.sayErr("shm", errno)
		return
	}
	// The kernel chose the address; going through the variable keeps the conversion one that vet can follow.
	memory := unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), shmSize)
	copy(memory, p.job.Text)
	p.say("shm", string(memory[:64]))
}
