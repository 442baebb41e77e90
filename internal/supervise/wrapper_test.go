// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise_test

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoseal/containment/internal/reexec"
	"github.com/evoseal/containment/internal/supervise"
	"github.com/evoseal/containment/internal/testenv"
)

// wrap runs the job behind a wrapper and returns the events, the payload's output, and what the wrapper said.
func wrap(t *testing.T, job supervise.Job, args []string, during func(*supervise.Process)) (events []supervise.Event, out, said string) {
	t.Helper()
	initFile, err := supervise.NewInit()
	if err != nil {
		t.Fatal(err)
	}
	defer initFile.Close()
	list, err := reexec.Sealed([]byte(strings.Join(args, "\x00") + "\x00"))
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	if _, err := list.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	outR, outW, saidR, saidW := pipes(t)
	files := supervise.Files{
		Stdin: null, Stdout: outW, Stderr: outW, Lock: null,
		Wrapper: &supervise.WrapperFiles{Diagnostics: saidW, Args: list, Init: initFile},
	}
	p, err := newServer(t).Start(job, files)
	outW.Close()
	saidW.Close()
	if err != nil {
		t.Fatal(err)
	}
	outText, saidText := readAll(outR), readAll(saidR)
	if during != nil {
		during(p)
	}
	for e := range p.Events() {
		events = append(events, e)
	}
	if err := p.Wait(10 * time.Second); err != nil {
		t.Error(err)
	}
	return events, <-outText, <-saidText
}

func readAll(r *os.File) <-chan string {
	text := make(chan string, 1)
	go func() {
		defer r.Close()
		b, _ := io.ReadAll(r)
		text <- string(b)
	}()
	return text
}

func pipes(t *testing.T) (r1, w1, r2, w2 *os.File) {
	t.Helper()
	var err [2]error
	r1, w1, err[0] = os.Pipe()
	r2, w2, err[1] = os.Pipe()
	if err[0] != nil || err[1] != nil {
		t.Fatal(err)
	}
	return r1, w1, r2, w2
}

// namespaced is a job in namespaces over the host's own files.
func namespaced(t *testing.T, script string) (supervise.Job, []string) {
	t.Helper()
	testenv.Need(t, "bubblewrap")
	path, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	job := shell(script)
	if os.Getuid() == 0 { // which has nothing to map without its capabilities
		job.UID, job.GID = 65534, 65534
	}
	job.Wrapper = &supervise.Wrapper{
		Program: path, UID: 1000, GID: 1000,
		Args: []string{"bwrap", "--args", strconv.Itoa(supervise.WrapperArgsFD), "--", supervise.InitPath},
	}
	return job, []string{"--unshare-user", "--unshare-pid", "--as-pid-1", "--die-with-parent", "--cap-drop", "ALL",
		"--uid", "1000", "--gid", "1000", "--ro-bind", "/", "/", "--proc", "/proc"}
}

func TestWrappedStatus(t *testing.T) {
	want := []supervise.Kind{supervise.Started, supervise.Ended, supervise.Reaped, supervise.Wrapped, supervise.Empty}
	for script, tc := range map[string]struct {
		code   int
		signal syscall.Signal
		output string
	}{
		"exit 42":                              {42, -1, ""},
		"exit 139":                             {139, -1, ""},
		"kill -SEGV $$":                        {-1, syscall.SIGSEGV, ""},
		"kill -KILL $$":                        {-1, syscall.SIGKILL, ""},
		"echo $PPID; readlink /proc/$PPID/exe": {1, -1, "1\n"},
		"setsid sleep 60 & setsid sleep 60 & exit 0": {0, -1, ""},
		"kill -9 1; kill -9 -1; exit 7":              {7, -1, ""},
		"ls /proc/self/fd | wc -l":                   {0, -1, "4\n"}, // 0, 1, 2 and the directory itself
	} {
		t.Run(script, func(t *testing.T) {
			job, args := namespaced(t, script)
			start := time.Now()
			events, out, said := wrap(t, job, args, nil)
			if got := kinds(events); !slices.Equal(got, want) {
				t.Fatalf("events %v, want %v; the wrapper says %q", got, want, said)
			}
			status := syscall.WaitStatus(events[1].Status)
			if status.ExitStatus() != tc.code || status.Signal() != tc.signal {
				t.Errorf("status %v, want exit %d, signal %d", status, tc.code, tc.signal)
			}
			if tc.output != "" && out != tc.output {
				t.Errorf("output %q, want %q", out, tc.output)
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("the run waited %v for what it left behind", took)
			}
		})
	}
}

// What keeps the payload from starting is told apart: its own program, our steps, the wrapper.
func TestWrappedFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*supervise.Job, *[]string)
		kinds  []supervise.Kind
		step   supervise.Step
		errno  syscall.Errno
	}{
		"no program": {
			func(j *supervise.Job, _ *[]string) { j.Programs = []string{"/no/such"} },
			[]supervise.Kind{supervise.Failed, supervise.Ended, supervise.Reaped, supervise.Wrapped, supervise.Empty}, supervise.StepExec, syscall.ENOENT,
		},
		"no directory": {
			func(j *supervise.Job, _ *[]string) { j.Dir = "/no/such" },
			[]supervise.Kind{supervise.Failed, supervise.Ended, supervise.Reaped, supervise.Wrapped, supervise.Empty}, supervise.StepDir, syscall.ENOENT,
		},
		"another uid inside": {
			func(j *supervise.Job, _ *[]string) { j.Wrapper.UID = 1001 },
			[]supervise.Kind{supervise.Failed, supervise.Ended, supervise.Reaped, supervise.Wrapped, supervise.Empty}, supervise.StepCheck, syscall.EPERM,
		},
		"no pid namespace": {
			func(_ *supervise.Job, args *[]string) {
				*args = slices.DeleteFunc(*args, func(a string) bool { return a == "--unshare-pid" || a == "--as-pid-1" })
			},
			[]supervise.Kind{supervise.Failed, supervise.Wrapped, supervise.Empty}, supervise.StepMonitor, syscall.EPERM,
		},
		"no wrapper": {
			func(j *supervise.Job, _ *[]string) { j.Wrapper.Program = "/no/such/bwrap" },
			[]supervise.Kind{supervise.Failed, supervise.Wrapped, supervise.Empty}, supervise.StepWrapper, syscall.ENOENT,
		},
		"a wrapper that fails": {
			func(_ *supervise.Job, args *[]string) { *args = append(*args, "--no-such-option") },
			[]supervise.Kind{supervise.Wrapped, supervise.Empty}, supervise.StepWrapper, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			job, args := namespaced(t, "echo started")
			tc.change(&job, &args)
			events, out, said := wrap(t, job, args, nil)
			if got := kinds(events); !slices.Equal(got, tc.kinds) {
				t.Fatalf("events %v, want %v; output %q, the wrapper says %q", got, tc.kinds, out, said)
			}
			if e := events[0]; e.Step != tc.step || syscall.Errno(e.Errno) != tc.errno {
				t.Errorf("step %v, errno %v; want %v, %v", e.Step, syscall.Errno(e.Errno), tc.step, tc.errno)
			}
			if strings.Contains(out, "started") {
				t.Error("the payload was started")
			}
			if name == "a wrapper that fails" && !strings.Contains(said, "no-such-option") {
				t.Errorf("the wrapper's words are lost: %q", said)
			}
		})
	}
}

// An order to kill ends everything, whatever the payload does about signals.
func TestWrappedKill(t *testing.T) {
	job, args := namespaced(t, `trap "" TERM HUP INT; setsid sleep 60 & while :; do sleep 60; done`)
	start := time.Now()
	events, _, said := wrap(t, job, args, func(p *supervise.Process) {
		if e := <-p.Events(); e.Kind != supervise.Started {
			t.Errorf("first event %+v", e)
		}
		p.Kill()
	})
	if len(events) == 0 || events[len(events)-1].Kind != supervise.Empty {
		t.Errorf("events %v; the wrapper says %q", kinds(events), said)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}
