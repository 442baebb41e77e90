// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// treePayloads are the payloads that leave processes behind.
func treePayloads() map[string]func(*payload) {
	return map[string]func(*payload){
		"forks":       forksPayload,
		"exec-daemon": execDaemonPayload,
		"daemon-end":  daemonEndPayload,
		"late-write":  lateWritePayload,
		"late-child":  lateChildPayload,
	}
}

// forksPayload starts N children as the words of the job say, waits until they are all up, says "reached" and how many
// there are, and then ends or waits for its input to end. "wait" makes it sleep until it is killed.
func forksPayload(p *payload) {
	has := kinds(p.job)
	r, w, err := os.Pipe()
	if err != nil {
		p.die(err.Error())
	}
	plan := plannedChild(has, int(w.Fd()))
	if life := lifeOf(p.job); life > 0 {
		plan.sleep = syscall.NsecToTimespec(int64(life))
	}
	started, refused := 0, error(nil)
	for range p.job.N {
		if refused = plan.fork(); refused != nil {
			break
		}
		started++
	}
	_ = w.Close()
	up := make([]byte, 1)
	ready := 0
	for ready < started {
		if n, err := r.Read(up); n != 1 || err != nil {
			break // a detached child that could not fork again never reports
		}
		ready++
	}
	p.say("children", strconv.Itoa(ready))
	p.sayErr("fork", refused)
	p.reached()
	if has("wait") {
		time.Sleep(childLife)
	}
	p.wait()
}

// lifeOf is what a job says about how long children live, as "live=" and a number of milliseconds among its words.
func lifeOf(j job) time.Duration {
	_, rest, _ := strings.Cut(j.Name, "live=")
	number, _, _ := strings.Cut(rest, " ")
	ms, _ := strconv.Atoi(number)
	return time.Duration(ms) * time.Millisecond
}

// plannedChild turns the words of a job into what each child does.
func plannedChild(has func(string) bool, readyFD int) *childPlan {
	plan := &childPlan{
		detach: has("detach"), deaf: has("deaf"), closeStd: has("close"), readyFD: readyFD,
		sleep: syscall.NsecToTimespec(int64(childLife)),
	}
	switch {
	case has("short"):
		plan.sleep = syscall.NsecToTimespec(int64(time.Millisecond))
	case has("burn"):
		plan.burnCPU, plan.sleep = syscall.NsecToTimespec(int64(5*time.Second)), syscall.Timespec{}
	}
	return plan
}

// execDaemonPayload starts a program in a session of its own, with its standard streams on /dev/null, and ends.
func execDaemonPayload(p *payload) {
	r, w, err := os.Pipe()
	if err != nil {
		p.die(err.Error())
	}
	cmd := exec.Command("./"+payloadName, marker, "daemon-end", p.tag, noJob)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		p.die(err.Error())
	}
	_ = w.Close()
	if n, _ := r.Read(make([]byte, 1)); n == 1 {
		p.reached()
	}
}

// daemonEndPayload reports that it is up and then only lives.
func daemonEndPayload(*payload) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	_, _ = syscall.Write(3, []byte{1})
	_ = syscall.Close(3)
	time.Sleep(childLife)
}

// lateWritePayload leaves a child behind that writes for as long as it lives.
func lateWritePayload(p *payload) {
	r, w, err := os.Pipe()
	if err != nil {
		p.die(err.Error())
	}
	args := append([]string{marker, "late-child", p.tag, noJob}, p.job.Paths...)
	cmd := exec.Command("./"+payloadName, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		p.die(err.Error())
	}
	_ = w.Close()
	if n, _ := r.Read(make([]byte, 1)); n == 1 {
		p.reached()
	}
	time.Sleep(childLife)
}

// lateChildPayload writes small and often, so that a short look is enough to see it.
func lateChildPayload(p *payload) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	_, _ = syscall.Write(3, []byte{1})
	for end := time.Now().Add(childLife); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		for i := range 2 {
			_ = appendTo(p.argument(i), "x")
		}
	}
}
