// SPDX-License-Identifier: Apache-2.0

package box_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
	"github.com/evoseal/containment/executor/internal/hostrun"
	"github.com/evoseal/containment/internal/supervise"
)

func judge(end box.Ending, l executor.Limits) *executor.Result {
	var r executor.Result
	f := hostrun.Facts{Ending: end.Ending, Limits: l, Over: end.Over, Total: [2]int64{end.Stdout.Total, end.Stderr.Total}}
	for _, v := range end.Volumes {
		f.DiskFull = max(f.DiskFull, v.Full)
	}
	hostrun.Judge(&r, f)
	return &r
}

func TestRun(t *testing.T) {
	t.Parallel()
	end := run(t, shell(t, "echo out; echo err >&2; id -u; id -g; pwd; exit 7"))
	if ws := syscall.WaitStatus(end.Leader.Status); !ws.Exited() || ws.ExitStatus() != 7 {
		t.Errorf("wait status %#x", end.Leader.Status)
	}
	if got := end.Stdout.String(); got != "out\n10001\n10001\n/box/workspace\n" || end.Stderr.String() != "err\n" {
		t.Errorf("stdout %q, stderr %q", got, end.Stderr)
	}
}

// The causes, each by the payload that shows it.
func TestCauses(t *testing.T) {
	t.Parallel()
	small := func(change func(*executor.Limits)) executor.Limits {
		l := executor.Limits{Wall: 20 * time.Second}.WithDefaults()
		change(&l)
		return l
	}
	none := func(*executor.Limits) {}
	shortWall := func(l *executor.Limits) { l.Wall = 200 * time.Millisecond }
	for name, c := range map[string]struct {
		script string
		limits executor.Limits
		want   executor.Cause
	}{
		"exit 139":  {"exit 139", small(none), executor.CauseExited},
		"signal":    {"kill -SEGV $$", small(none), executor.CauseSignalled},
		"wall":      {"sleep 60", small(shortWall), executor.CauseWallTimeout},
		"wall tree": {"sleep 60 & sleep 61", small(shortWall), executor.CauseWallTimeout},
		"cpu tree": {"for i in 1 2 3; do while :; do :; done & done; wait",
			small(func(l *executor.Limits) { l.CPU = 300 * time.Millisecond }), executor.CauseCPUTimeout},
		"output": {"while :; do echo 0123456789; done",
			small(func(l *executor.Limits) { l.Output = 100_000 }), executor.CauseOutputLimit},
		"disk":   {"head -c 8m /dev/zero > f; exit 0", small(none), executor.CauseDiskFull},
		"inodes": {"i=0; while [ $i -lt 400 ]; do : > f$i; i=$((i+1)); done; exit 0", small(none), executor.CauseDiskFull},
		"tmp":    {"head -c 8m /dev/zero > /tmp/f; exit 0", small(none), executor.CauseDiskFull},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := shell(t, c.script)
			job.Limits = c.limits
			end := run(t, job)
			if r := judge(end, c.limits); r.Cause != c.want {
				t.Errorf("cause %v (%s), want %v; stderr %s", r.Cause, r.Detail, c.want, end.Stderr)
			}
		})
	}
}

// The host's word that the CPU time is used up ends a run that the supervisor would let go on.
func TestSpent(t *testing.T) {
	t.Parallel()
	job := shell(t, "sleep 300")
	job.Limits.Wall = 5 * time.Minute
	asked := 0
	job.Spent = func() bool { asked++; return asked > 1 }
	end := run(t, job)
	if r := judge(end, job.Limits); r.Cause != executor.CauseCPUTimeout || asked != 2 {
		t.Errorf("cause %v, asked %d times", r.Cause, asked)
	}
}

// What outlives the leader dies with the run, daemons in their own session too, and the run ends at once.
func TestDaemonDies(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	end := run(t, shell(t, "setsid sh -c 'sleep 300; echo late' & setsid sleep 300 & exit 3"))
	if r := judge(end, executor.Limits{}.WithDefaults()); r.Cause != executor.CauseExited || r.ExitCode != 3 {
		t.Errorf("cause %v, code %d", r.Cause, r.ExitCode)
	}
	if took := time.Since(begin); took > 60*time.Second {
		t.Errorf("the run took %v: it waited for what it should kill", took)
	}
}

func TestNotStarted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*supervise.Job)
		want   executor.Cause
	}{
		"no program":     {func(j *supervise.Job) { j.Programs = []string{"/no/such", "/nor/this"} }, executor.CauseNotFound},
		"not executable": {func(j *supervise.Job) { j.Programs = []string{"/bin/../usr"} }, executor.CauseNotExecutable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := shell(t, "")
			c.change(&job.Stage)
			if r := judge(run(t, job), job.Limits); r.Cause != c.want {
				t.Errorf("cause %v, want %v", r.Cause, c.want)
			}
		})
	}
}

// A step of ours that fails is an error with its name, and the box can still be told to end.
func TestSetupFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*box.Job)
		step   string
	}{
		"directory": {func(j *box.Job) { j.Stage.Dir = box.Workspace + "/none" }, "directory"},
		"outside":   {func(j *box.Job) { j.Stage.Dir = "/" }, "directory"},
		"no filter": {func(j *box.Job) { j.Stage.Filter = nil }, "job"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job, b := shell(t, ""), open(t)
			c.change(&job)
			_, err := b.Run(t.Context(), job)
			if e, ok := errors.AsType[*executor.SetupError](err); !ok || e.Step != c.step {
				t.Errorf("error %v, want one of step %q", err, c.step)
			}
			if err := b.Exit(); err != nil {
				t.Error(err)
			}
			if <-b.ended; b.cmd.ProcessState.ExitCode() != 0 {
				t.Errorf("%v: %s", b.cmd.ProcessState, b.stderr)
			}
		})
	}
}

func TestStdin(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	job := shell(t, "cksum; ")
	job.Stdin = bytes.NewReader(data)
	end := run(t, job)
	if want := fmt.Sprintf("%d", len(data)); !strings.Contains(end.Stdout.String(), " "+want+"\n") {
		t.Errorf("cksum says %q, want %s bytes", end.Stdout, want)
	}
	// A payload that does not read, and a source that never ends or never gives anything, hold nobody.
	for name, src := range map[string]io.Reader{"endless": endless{}, "silent": silent(t)} {
		job := shell(t, "exit 0")
		job.Stdin = src
		if r := judge(run(t, job), job.Limits); !r.OK() {
			t.Errorf("%s: %v", name, r.Cause)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func silent(t *testing.T) io.Reader {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r
}

func TestCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	job := shell(t, "echo ready; sleep 60")
	job.Stdout = writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	end := runIn(t, ctx, job)
	if r := judge(end, job.Limits); r.Cause != executor.CauseCancelled || end.Stdout.String() != "ready\n" {
		t.Errorf("cause %v, stdout %q", r.Cause, end.Stdout)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// pack makes a workspace of the host's files and packs it.
func pack(t *testing.T, rules box.Rules, files map[string]string) *box.Packed {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(content, "->"); ok {
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rules.MaxBytes, rules.MaxFiles = 8<<20, 1000
	p, err := box.Pack(t.Context(), t.TempDir(), dir, rules)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestWorkspace(t *testing.T) {
	t.Parallel()
	packed := pack(t, box.Rules{OmitNames: []string{".git"}, Omit: []string{"hidden"}, ReadOnly: []string{"keep/this"}},
		map[string]string{
			"a": "A", "sub/b": "B", "link": "->sub/b", "dangling": "->/no/where", ".git/config": "x", "hidden/y": "y",
			"keep/this/file": "K", "keep/other": "O",
		})
	job := shell(t, `find . | sort; cat link; echo; stat -c %U:%a a 2>/dev/null
echo changed > keep/this/file; rm -rf keep/this; mv keep/this keep/that; rm -f keep/other; echo n > keep/new && ls keep
cat keep/this/file`)
	job.Trees = []box.Tree{{Packed: packed, Target: box.Workspace}}
	end := run(t, job)
	want := strings.Join([]string{
		".", "./a", "./dangling", "./keep", "./keep/other", "./keep/this", "./keep/this/file", "./link", "./sub", "./sub/b", "B",
	}, "\n") + "\n"
	got := end.Stdout.String()
	if head, tail, _ := strings.Cut(got, "B\n"); head+"B\n" != want || !strings.HasSuffix(tail, "new\nthis\nK") {
		t.Errorf("got\n%s; stderr %s", got, end.Stderr)
	}
}

// A workspace that does not fit is an error of the set-up, whose message says so.
func TestWorkspaceTooLarge(t *testing.T) {
	t.Parallel()
	packed := pack(t, box.Rules{}, map[string]string{"large": strings.Repeat("x", 5<<20)})
	job, b := shell(t, ""), open(t)
	job.Trees = []box.Tree{{Packed: packed, Target: box.Workspace}}
	_, err := b.Run(t.Context(), job)
	if e, ok := errors.AsType[*executor.SetupError](err); !ok || e.Step != "workspace" || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v", err)
	}
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	job := shell(t, `mkdir -p out/.git; echo one > out/one; chmod 755 out/one; ln -s /etc/passwd out/link; mkfifo out/fifo
echo x > out/.git/config; echo h > out/a; ln out/a out/b; chmod 0 out/one; truncate -s 1m out/sparse; chmod 0 .`)
	dest := filepath.Join(t.TempDir(), "dest")
	job.Artifacts = box.Artifacts{Patterns: []string{"out/**", "none"}, Dest: dest, ID: "x1"}
	end := run(t, job)
	var names []string
	for _, a := range end.Artifacts {
		names = append(names, a.Path)
		data, err := os.ReadFile(filepath.Join(dest, a.Path))
		if err != nil || int64(len(data)) != a.Size {
			t.Errorf("%s: %d bytes of %d: %v", a.Path, len(data), a.Size, err)
		}
	}
	if diff := cmp.Diff([]string{"out/one", "out/sparse"}, names); diff != "" {
		t.Errorf("artifacts (-want +got):\n%s", diff)
	}
	refused := map[string]bool{}
	for _, r := range end.Refused {
		refused[r.Path] = true
	}
	want := map[string]bool{"none": true, "out/.git": true, "out/a": true, "out/b": true, "out/fifo": true, "out/link": true}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

func isLost(err error) bool { return errors.Is(err, executor.ErrLost) }

// A caller that gives up before anything was sent is told so, whatever comes first.
func TestCancelledBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	packed := pack(t, box.Rules{}, map[string]string{"large": strings.Repeat("x", 2<<20)})
	for range 3 {
		job := shell(t, "sleep 60")
		job.Trees = []box.Tree{{Packed: packed, Target: box.Workspace}}
		if r := judge(runIn(t, ctx, job), job.Limits); r.Cause != executor.CauseCancelled {
			t.Errorf("cause %v", r.Cause)
		}
	}
}
