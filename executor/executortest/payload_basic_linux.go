// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// basicPayloads are the payloads that attack nothing: they show the plain semantics.
func basicPayloads() map[string]func(*payload) {
	return map[string]func(*payload){
		"witness":     witnessPayload,
		"victim":      victimPayload,
		"noop":        func(*payload) {},
		"reach":       func(p *payload) { p.reached() },
		"hold":        func(p *payload) { p.reached(); p.wait() },
		"exit":        exitPayload,
		"signal":      signalPayload,
		"sleep":       sleepPayload,
		"argv":        argvPayload,
		"stdin":       stdinPayload,
		"cwd":         cwdPayload,
		"both":        bothPayload,
		"one-of-many": concurrencyPayload,
	}
}

// argument returns one of the extra arguments of a plainSpec.
func (p *payload) argument(i int) string {
	if at := argNoJob + 1 + i; at < len(os.Args) {
		return os.Args[at]
	}
	p.die("missing argument")
	return ""
}

// number is an argument that is one.
func (p *payload) number(i int) int {
	n, err := strconv.Atoi(p.argument(i))
	if err != nil {
		p.die(err.Error())
	}
	return n
}

// exitPayload ends with the code that it is told.
func exitPayload(p *payload) {
	p.reached()
	exit(p.number(0))
}

// signalPayload ends itself by a signal in the way a C program would: the Go runtime's handlers would turn some of them
// into an exit code. A process that is PID 1 of a namespace without an init survives this, and says so.
func signalPayload(p *payload) {
	p.reached()
	sig := syscall.Signal(p.number(0))
	resetSignal(sig)
	_ = syscall.Kill(syscall.Getpid(), sig)
	time.Sleep(300 * time.Millisecond)
	p.say("survived", sig.String())
}

// resetSignal gives a signal its default effect back. A zero sigaction is SIG_DFL on every architecture.
func resetSignal(sig syscall.Signal) {
	var act [4]uint64
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&act[0])), 0, 8, 0, 0)
}

// sleepPayload does nothing for some milliseconds.
func sleepPayload(p *payload) {
	p.reached()
	time.Sleep(time.Duration(p.number(0)) * time.Millisecond)
}

// argvPayload shows its whole argument list, its own name included.
func argvPayload(p *payload) {
	p.reached()
	for _, arg := range os.Args {
		p.say("arg", arg)
	}
}

// stdinPayload reads to the end, which is part of the test: there must be one.
func stdinPayload(p *payload) {
	p.reached()
	data, err := io.ReadAll(os.Stdin)
	p.sayErr("err", err)
	p.say("stdin", string(data))
}

// cwdPayload shows where it is by what lies there, not only by name.
func cwdPayload(p *payload) {
	p.reached()
	dir, err := os.Getwd()
	p.sayErr("err", err)
	p.say("cwd", dir)
	entries, err := os.ReadDir(".")
	p.sayErr("err", err)
	for _, e := range entries {
		p.say("entry", e.Name())
	}
}

// bothPayload writes bytes that are not text, different ones to each stream.
func bothPayload(*payload) {
	_, _ = os.Stdout.Write([]byte("out\x00\xff\xfe\n\r"))
	_, _ = os.Stderr.Write([]byte("err\x80\x00"))
}
