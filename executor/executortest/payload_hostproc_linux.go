// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"
)

// hostPayloads are the payloads that look at processes, their own and others.
func hostPayloads() map[string]func(*payload) {
	return map[string]func(*payload){
		"status":    statusPayload,
		"setuid":    setuidPayload,
		"ids":       idsPayload,
		"kill":      killPayload,
		"ptrace":    ptracePayload,
		"scan-proc": scanProcPayload,
		"hostname":  hostnamePayload,
	}
}

// killPayload sends one signal to one process that its host has named. It never signals a group, or everybody.
func killPayload(p *payload) {
	p.reached()
	p.sayErr("kill", syscall.Kill(p.job.Pid, syscall.Signal(p.job.N)))
}

// ptracePayload reads another process's memory in the ways that the kernel offers.
func ptracePayload(p *payload) {
	p.reached()
	buf := make([]byte, p.job.N)
	if f, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.job.Pid)); err == nil {
		n, _ := f.ReadAt(buf, int64(p.job.Addr))
		_ = f.Close()
		p.say("by", "mem "+string(buf[:max(n, 0)]))
	}
	type iovec struct{ base, len uintptr }
	local := iovec{uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf))}
	remote := iovec{uintptr(p.job.Addr), uintptr(len(buf))}
	n, _, errno := syscall.Syscall6(sysProcessVMReadv, uintptr(p.job.Pid), uintptr(unsafe.Pointer(&local)), 1,
		uintptr(unsafe.Pointer(&remote)), 1, 0)
	if errno == 0 {
		p.say("by", "process_vm_readv "+string(buf[:n]))
	}
	if syscall.PtraceAttach(p.job.Pid) == nil {
		_, _ = syscall.Wait4(p.job.Pid, nil, 0, nil)
		n, _ := syscall.PtracePeekData(p.job.Pid, uintptr(p.job.Addr), buf)
		_ = syscall.PtraceDetach(p.job.Pid)
		p.say("by", "ptrace "+string(buf[:max(n, 0)]))
	}
}

// scanProcPayload reads one file of every process. From environments and arguments it prints what has one of the given
// prefixes, which are no secret; names are printed as they are.
func scanProcPayload(p *payload) {
	p.reached()
	for _, file := range procFiles(p.job.Name) {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if p.job.Name == "comm" {
			p.say("comm", strings.TrimSpace(string(data)))
			continue
		}
		for word := range strings.SplitSeq(string(data), "\x00") {
			if strings.HasPrefix(word, p.job.Paths[0]) || strings.HasPrefix(word, p.job.Paths[1]) {
				p.say("found", word)
			}
		}
	}
}

// hostnamePayload asks the kernel: a file or a variable may say something else.
func hostnamePayload(p *payload) {
	p.reached()
	var u syscall.Utsname
	_ = syscall.Uname(&u)
	var name []byte
	for _, c := range u.Nodename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	p.say("hostname", string(name))
}

// statusPayload stands still while its host looks at it.
func statusPayload(p *payload) {
	text, _ := os.ReadFile("/proc/self/status")
	p.say("status", string(text))
	p.reached()
	p.wait()
}

// setuidPayload starts the planted file and shows what it was itself before.
func setuidPayload(p *payload) {
	p.reached()
	p.say("before", ids())
	p.sayErr("exec", execSelf(p.job.Paths[0], "ids", p.tag))
}

// idsPayload shows what came of the planted file.
func idsPayload(p *payload) {
	p.say("ids", ids())
	text, _ := os.ReadFile("/proc/thread-self/status")
	value, _ := fieldOf(string(text), "NoNewPrivs")
	p.say("nnp", value)
}

// ids asks the kernel for real and effective ids.
func ids() string {
	return fmt.Sprintf("ruid %d euid %d rgid %d egid %d", os.Getuid(), os.Geteuid(), os.Getgid(), os.Getegid())
}

// execSelf runs another payload from a file and hands its answers on.
func execSelf(file, name, tag string) error {
	cmd := exec.Command(file, marker, name, tag, noJob)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
