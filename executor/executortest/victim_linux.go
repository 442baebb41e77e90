// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// victim is a process of the host that belongs to the caller and has something to lose: secrets in its environment, its
// arguments and its memory, a name, and its life.
type victim struct {
	cmd      *exec.Cmd
	pid      int
	comm     string // a random process name
	envName  string
	envValue string
	argValue string // stands in its arguments after argPrefix
	memValue string
	memAddr  uint64
	dead     atomic.Bool
	exited   chan struct{}
}

const argPrefix = "--executortest-secret="

// victim starts one; it dies with the scene, and by itself when this process does, because its input then ends.
func (s *scene) victim() (*victim, error) {
	v := &victim{
		comm: "v" + randomHex(7)[:14], envName: "EXECUTORTEST_" + randomHex(6), envValue: randomHex(16),
		argValue: randomHex(16), memValue: randomHex(16), exited: make(chan struct{}),
	}
	bin, release, err := holdTemplate()
	if err != nil {
		return nil, s.fault(err)
	}
	s.later(release)
	v.cmd = exec.Command(bin, marker, "victim", randomHex(12), "job", argPrefix+v.argValue)
	v.cmd.Env = []string{v.envName + "=" + v.envValue}
	v.cmd.Dir = s.dir
	stdin, err := v.cmd.StdinPipe()
	if err != nil {
		return nil, s.fault(err)
	}
	stdout, err := v.cmd.StdoutPipe()
	if err != nil {
		return nil, s.fault(err)
	}
	if err := retryBusy(v.cmd.Start); err != nil {
		return nil, s.fault(err)
	}
	v.pid = v.cmd.Process.Pid
	s.later(func() { v.stop(stdin) })
	if err := v.greet(stdin, stdout); err != nil {
		return nil, s.fault(err)
	}
	go v.await()
	return v, nil
}

// greet tells the victim its secret and learns where it lies.
func (v *victim) greet(stdin io.Writer, stdout io.Reader) error {
	line, err := json.Marshal(job{Text: v.memValue, Name: v.comm})
	if err != nil {
		return err
	}
	if _, err := stdin.Write(append(line, '\n')); err != nil {
		return err
	}
	answer, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		return err
	}
	for _, text := range answers(answer, "address") {
		v.memAddr, err = strconv.ParseUint(text, 10, 64)
	}
	return err
}

// await learns of the victim's death as its parent does.
func (v *victim) await() {
	_, _ = v.cmd.Process.Wait()
	v.dead.Store(true)
	close(v.exited)
}

// stop ends it and waits, so that no case meets the victim of another.
func (v *victim) stop(stdin io.Closer) {
	_ = stdin.Close()
	_ = v.cmd.Process.Kill()
	select {
	case <-v.exited:
	case <-time.After(5 * time.Second):
	}
}

// died waits a little: a signal that was sent takes effect a moment later.
func (v *victim) died() bool { return eventually(100*time.Millisecond, v.dead.Load) }

const (
	prSetName    = 15
	prSetPtracer = 0x59616d61 // Yama's way to say who may trace; -1 is everybody
)

// victimPayload makes itself as open as a careless process of the caller is, and waits.
func victimPayload(p *payload) {
	runtime.LockOSThread() // init runs on the main thread: its name is the process's name
	name := append([]byte(p.job.Name), 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetName, uintptr(unsafe.Pointer(&name[0])), 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetPtracer, ^uintptr(0), 0)
	secret, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		p.die(err.Error())
	}
	copy(secret, p.job.Text)
	p.say("address", strconv.FormatUint(uint64(uintptr(unsafe.Pointer(&secret[0]))), 10))
	p.wait()
	runtime.KeepAlive(secret)
}
