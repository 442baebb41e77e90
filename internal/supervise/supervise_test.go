// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/evoseal/containment/internal/supervise"
)

func newServer(t testing.TB) *supervise.Server {
	t.Helper()
	server := new(supervise.Server)
	t.Cleanup(func() {
		if err := server.Close(5 * time.Second); err != nil {
			t.Error(err)
		}
	})
	return server
}

// run starts the job with its output on a pipe and returns the events and the output.
func run(t *testing.T, job supervise.Job, during func(*supervise.Process)) ([]supervise.Event, string) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	server := newServer(t)
	p, err := server.Start(job, supervise.Files{Stdin: null, Stdout: w, Stderr: w, Lock: null})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(r)
		out <- string(b)
	}()
	if during != nil {
		during(p)
	}
	var events []supervise.Event
	for e := range p.Events() {
		events = append(events, e)
	}
	if err := p.Wait(10 * time.Second); err != nil {
		t.Error(err)
	}
	return events, <-out
}

func shell(script string) supervise.Job {
	return supervise.Job{
		Programs: []string{"/bin/sh"}, Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
		Dir: "/", UID: -1, GID: -1,
	}
}

func kinds(events []supervise.Event) (list []supervise.Kind) {
	for _, e := range events {
		list = append(list, e.Kind)
	}
	return list
}

func TestStatus(t *testing.T) {
	for _, tc := range []struct {
		script string
		want   syscall.WaitStatus
	}{
		{"exit 0", 0},
		{"exit 42", 42 << 8},
		{"exit 139", 139 << 8},
		{"kill -SEGV $$", 11},
		{"kill -KILL $$", 9},
	} {
		events, _ := run(t, shell(tc.script), nil)
		if len(events) != 3 || events[0].Kind != supervise.Started || events[1].Kind != supervise.Ended || events[2].Kind != supervise.Empty {
			t.Errorf("%s: events %v, want started, ended, empty", tc.script, kinds(events))
			continue
		}
		if got := syscall.WaitStatus(events[1].Status) &^ 0x80; got != tc.want {
			t.Errorf("%s: status %#x, want %#x", tc.script, got, tc.want)
		}
	}
}

func TestExecFailures(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		programs []string
		errno    syscall.Errno
		detail   uint32
	}{
		{"nothing", []string{"/no/a", "/no/b"}, syscall.ENOENT, 0},
		{"interpreter", []string{"/no/a", script}, syscall.ENOENT, 1},
		{"not executable", []string{plain, "/no/b"}, syscall.EACCES, 0},
		{"directory", []string{dir}, syscall.EACCES, 0},
	} {
		job := shell("")
		job.Programs = tc.programs
		events, _ := run(t, job, nil)
		if len(events) == 0 || events[0].Kind != supervise.Failed {
			t.Errorf("%s: events %v, want failed first", tc.name, kinds(events))
			continue
		}
		e := events[0]
		if e.Step != supervise.StepExec || syscall.Errno(e.Errno) != tc.errno || e.Detail != tc.detail {
			t.Errorf("%s: step %v, errno %v, detail %d; want exec, %v, %d", tc.name, e.Step, syscall.Errno(e.Errno), e.Detail, tc.errno, tc.detail)
		}
	}
}

// A daemon in a session of its own dies with the run, whether the leader ended or the host program wants it over.
func TestTreeDies(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		kill         bool
	}{
		{"leader ends", `until [ -e up ]; do sleep 0.01; done; exit 3`, false},
		{"killed", `sleep 100`, true},
	} {
		start := time.Now()
		job := shell(`setsid sh -c 'trap "" TERM HUP; echo $$; : >up; sleep 100 & wait' & ` + tc.script)
		job.Dir = t.TempDir()
		up := filepath.Join(job.Dir, "up")
		events, out := run(t, job, func(p *supervise.Process) {
			for end := time.Now().Add(20 * time.Second); tc.kill && time.Now().Before(end); time.Sleep(time.Millisecond) {
				if _, err := os.Stat(up); err == nil {
					p.Kill()
					return
				}
			}
		})
		if d := time.Since(start); d > 50*time.Second {
			t.Errorf("%s: took %v", tc.name, d)
		}
		if len(out) == 0 {
			t.Fatalf("%s: the daemon did not start: %v", tc.name, kinds(events))
		}
		if _, err := os.Stat("/proc/" + out[:len(out)-1]); err == nil {
			t.Errorf("%s: daemon %s is alive", tc.name, out)
		}
	}
}

func BenchmarkTrue(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	job := supervise.Job{Programs: []string{"/bin/true"}, Args: []string{"true"}, Dir: "/", UID: -1, GID: -1}
	if os.Getuid() == 0 {
		job.UID, job.GID, job.Reserved = 65222, 65222, true
	}
	server := newServer(b)
	for b.Loop() {
		p, err := server.Start(job, supervise.Files{Stdin: null, Stdout: null, Stderr: null, Lock: null})
		if err != nil {
			b.Fatal(err)
		}
		for e := range p.Events() {
			if e.Kind == supervise.Failed {
				b.Fatal(e)
			}
		}
		if err := p.Wait(time.Second); err != nil {
			b.Fatal(err)
		}
	}
}
