// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// envPayloads are the payloads that show what they inherited.
func envPayloads() map[string]func(*payload) {
	return map[string]func(*payload){
		"environ":       environPayload,
		"fds":           fdsPayload,
		"fd-openat":     fdOpenatPayload,
		"fd-write":      fdWritePayload,
		"stdout-reopen": stdoutReopenPayload,
		"home-tmp":      homeTmpPayload,
		"process-state": processStatePayload,
		"burn":          burnPayload,
	}
}

// environPayload reads what the kernel was given: os.Environ hides names that appear twice.
func environPayload(p *payload) {
	p.reached()
	raw, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		for _, env := range os.Environ() {
			p.say("env", env)
		}
		return
	}
	for env := range bytes.SplitSeq(bytes.TrimSuffix(raw, []byte{0}), []byte{0}) {
		p.say("env", string(env))
	}
}

// fdsPayload lists inherited descriptors. The Go runtime and this program open theirs with CLOEXEC, and one that came
// through execve cannot have that flag, so the flag tells them apart.
func fdsPayload(p *payload) {
	p.reached()
	for fd := 3; fd <= 4096; fd++ {
		flags, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		if errno != 0 || flags&syscall.FD_CLOEXEC != 0 {
			continue
		}
		what, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		buf := make([]byte, 64)
		n, _ := syscall.Pread(fd, buf, 0)
		p.say("fd", fmt.Sprintf("%d is %s: %s", fd, what, buf[:max(n, 0)]))
	}
}

// fdOpenatPayload opens relative to a descriptor that it never opened itself.
func fdOpenatPayload(p *payload) {
	p.reached()
	fd, err := syscall.Openat(int(p.job.N), p.job.Name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		p.sayErr("openat", err)
		return
	}
	buf := make([]byte, 64)
	n, _ := syscall.Read(fd, buf)
	p.say("read", string(buf[:max(n, 0)]))
}

// fdWritePayload writes to one.
func fdWritePayload(p *payload) {
	p.reached()
	_, err := syscall.Write(int(p.job.N), []byte("taken\n"))
	p.sayErr("write", err)
}

// stdoutReopenPayload does what `echo x > /dev/stdout` does.
func stdoutReopenPayload(p *payload) {
	p.reached()
	fd, err := syscall.Open("/proc/self/fd/1", syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		p.sayErr("reopened", err)
		return
	}
	_, _ = syscall.Write(fd, []byte("reopened \"yes\"\n"))
}

// homeTmpPayload leaves a file in each directory, for the host to look for.
func homeTmpPayload(p *payload) {
	p.reached()
	for _, name := range []string{"HOME", "TMPDIR"} {
		dir := os.Getenv(name)
		p.say(name, dir)
		p.sayErr("write-"+name, os.WriteFile(filepath.Join(dir, p.tag), []byte("x"), 0o644))
	}
}

// processStatePayload reports what a process inherits beside its environment and descriptors.
func processStatePayload(p *payload) {
	p.reached()
	p.say("umask", fmt.Sprintf("%03o", syscall.Umask(0o22)))
	status, _ := os.ReadFile("/proc/self/status")
	for _, field := range []string{"SigIgn", "SigBlk"} {
		value, err := fieldOf(string(status), field)
		if err != nil {
			value = err.Error()
		}
		p.say(field, value)
	}
	var core syscall.Rlimit
	_ = syscall.Getrlimit(syscall.RLIMIT_CORE, &core)
	// 1 is as good as 0 for a file, and the one value at which the kernel starts no pipe handler.
	p.say("core", fmt.Sprintf("%d %d", core.Cur&^1, core.Max&^1))
	p.say("session", sessionID())
	terminal := "none"
	if fd, err := syscall.Open("/dev/tty", syscall.O_RDWR|syscall.O_CLOEXEC, 0); err == nil {
		_ = syscall.Close(fd)
		terminal = "present"
	}
	p.say("terminal", terminal)
}

// sessionID returns the session as the run sees it; 0 means that its leader is out of sight, in an outer pid namespace.
func sessionID() string {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err.Error()
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[3] // state ppid pgrp session
}

// burnPayload uses processor time, measured by the process itself.
func burnPayload(p *payload) {
	p.reached()
	burn(time.Duration(p.number(0)) * time.Millisecond)
}

// burn asks the kernel how much was used; a loop of fixed length would measure the machine.
func burn(d time.Duration) {
	for {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		if time.Duration(u.Utime.Nano()+u.Stime.Nano()) >= d {
			return
		}
	}
}
