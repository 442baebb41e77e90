// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// limitPayloads are the payloads that take too much of something.
func limitPayloads() map[string]func(*payload) {
	return map[string]func(*payload){
		"burn-tree":  burnTreePayload,
		"fill-one":   fillOnePayload,
		"fill-dirs":  fillDirsPayload,
		"open-files": openFilesPayload,
		"touch":      touchPayload,
		"touch-tree": touchTreePayload,
		"oom-child":  oomChildPayload,
	}
}

// burnTreePayload lets each child burn Pid milliseconds and waits for them, or for as long as orphans need.
func burnTreePayload(p *payload) {
	has := kinds(p.job)
	plan := &childPlan{detach: has("detach"), burnCPU: syscall.NsecToTimespec(int64(p.job.Pid) * int64(time.Millisecond))}
	p.reached()
	r, w, err := os.Pipe()
	if err != nil {
		p.die(err.Error())
	}
	for range p.job.N {
		if err := plan.fork(); err != nil {
			p.die(err.Error())
		}
	}
	_ = w.Close()
	_, _ = r.Read(make([]byte, 1)) // ends when the last child has: each holds a copy of the other end
}

// fillOnePayload writes N bytes to one file.
func fillOnePayload(p *payload) {
	p.reached()
	resetSignal(syscall.SIGXFSZ)
	fd, err := syscall.Open(p.job.Paths[0], syscall.O_WRONLY|syscall.O_CREAT|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		p.die(err.Error())
	}
	p.say("filled", strconv.FormatInt(fill(fd, p.job.N), 10))
}

// fill writes up to n bytes and returns how many the kernel took.
func fill(fd int, n int64) int64 {
	block := []byte(strings.Repeat("0123456789abcdef", 4096))
	var done int64
	for done < n {
		m, err := syscall.Write(fd, block[:min(int64(len(block)), n-done)])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || m <= 0 {
			break
		}
		done += int64(m)
	}
	return done
}

// fillDirsPayload writes files of 1 MiB to each directory until N bytes are there or nothing is taken any more.
func fillDirsPayload(p *payload) {
	var total int64
	for d, dir := range allMounts(p.job.Paths) {
		for i := 0; total < p.job.N; i++ {
			// Two of the names may lead to one directory, so each gets files of its own, and none is written twice.
			name := "executortest-" + p.tag + "-" + strconv.Itoa(d) + "-" + strconv.Itoa(i)
			path := filepath.Join(os.ExpandEnv(dir), name)
			fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o644)
			if err != nil {
				p.sayErr("open", err)
				break
			}
			took := fill(fd, 1<<20)
			_ = syscall.Close(fd)
			total += took
			if took < 1<<20 {
				break
			}
		}
	}
	p.say("total", strconv.FormatInt(total, 10))
	p.reached()
	p.wait()
}

// allMounts replaces everyMount by what the kernel lists.
func allMounts(dirs []string) []string {
	var list []string
	for _, dir := range dirs {
		if dir != everyMount {
			list = append(list, dir)
			continue
		}
		text, _ := os.ReadFile("/proc/self/mountinfo")
		for line := range strings.Lines(string(text)) {
			const mountPoint = 4
			if f := strings.Fields(line); len(f) > mountPoint && !strings.HasPrefix(f[mountPoint], "/proc") {
				list = append(list, f[mountPoint])
			}
		}
	}
	return list
}

// openFilesPayload opens until it is refused.
func openFilesPayload(p *payload) {
	p.reached()
	highest := 2
	for range p.job.N {
		fd, err := syscall.Open("/proc/self/status", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		highest = max(highest, fd)
	}
	p.say("opened", strconv.Itoa(highest+1))
}

// touchPayload takes N bytes of memory and uses them, in steps, so that the kernel meets its limit on the way.
func touchPayload(p *payload) {
	p.reached()
	const step = 16 << 20
	for done := int64(0); done < p.job.N; done += step {
		if _, err := syscall.Mmap(-1, 0, step, syscall.PROT_READ|syscall.PROT_WRITE,
			syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_POPULATE); err != nil {
			p.sayErr("refused", err)
			return
		}
	}
	p.say("touched", strconv.FormatInt(p.job.N, 10))
}

// touchTreePayload has four children that hold N bytes each at the same time, however long each needs to get them.
func touchTreePayload(p *payload) {
	touched, theirs, err := os.Pipe()
	hold, ours, err2 := os.Pipe()
	if err := errors.Join(err, err2); err != nil {
		p.die(err.Error())
	}
	plan := &childPlan{
		touch: uintptr(p.job.N), touchedFD: int(theirs.Fd()), heldFD: int(hold.Fd()), releaseFD: int(ours.Fd()),
	}
	p.reached()
	for range 4 {
		if err := plan.fork(); err != nil {
			p.die(err.Error())
		}
	}
	_ = theirs.Close()
	all, _ := io.ReadAll(touched) // it ends when each of them has said so or is dead
	_ = ours.Close()
	p.say("held", strconv.Itoa(len(all)))
}

// oomChildPayload has a child that takes too much, and ends with success whatever became of it.
func oomChildPayload(p *payload) {
	cmd := exec.Command("./"+payloadName, marker, "touch", p.tag)
	cmd.Stdin = strings.NewReader(`{"N":` + strconv.FormatInt(p.job.N, 10) + "}\n")
	out, _ := cmd.Output()
	p.reached()
	for range answers(out, "touched") {
		p.say("touched", "by a child")
	}
}
