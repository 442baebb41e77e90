// SPDX-License-Identifier: Apache-2.0

package box_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
	"github.com/evoseal/containment/internal/supervise"
)

// What the payload's process holds is nothing but what it was given.
func TestPayloadHolds(t *testing.T) {
	t.Parallel()
	job := shell(t, "cat /proc/self/status; echo oom: $(cat /proc/self/oom_score_adj); echo fds: $(ls /proc/self/fd); "+
		"echo sid: $(cut -d' ' -f6 /proc/self/stat) $$; env | sort; umask")
	job.Stage.Rlimits = append(job.Stage.Rlimits, supervise.Rlimit{Resource: unix.RLIMIT_NPROC, Soft: 9, Hard: 9})
	end := run(t, job)
	got := map[string]string{}
	for s := bufio.NewScanner(strings.NewReader(end.Stdout.String())); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), ":")
		got[name] = strings.Join(strings.Fields(value), " ")
	}
	four := fmt.Sprintf("%[1]d %[1]d %[1]d %[1]d", box.UID)
	const none = "0000000000000000"
	for field, want := range map[string]string{
		"Uid": four, "Gid": four, "Groups": "", "NoNewPrivs": "1", "Seccomp": "2",
		"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
		"SigBlk": none, "SigIgn": none, "SigCgt": none, "oom": "1000", "fds": "0 1 2 3", // 3 is of ls
	} {
		if got[field] != want {
			t.Errorf("%s is %q, want %q", field, got[field], want)
		}
	}
	const rest = "\nPATH=/usr/bin:/bin\nPWD=/box/workspace\n0022\n"
	if _, tail, _ := strings.Cut(end.Stdout.String(), "sid: "); !strings.HasSuffix(tail, rest) {
		t.Errorf("environment and umask: %q", tail)
	}
	if sid := strings.Fields(got["sid"]); len(sid) != 2 || sid[0] != sid[1] {
		t.Errorf("session and leader: %q", got["sid"])
	}
}

// The supervisor is out of the payload's reach. Each line proves first that the payload can do such a thing to itself.
func TestSupervisorOutOfReach(t *testing.T) {
	t.Parallel()
	end := run(t, shell(t, `
test -r /proc/self/environ && kill -0 $$ && readlink /proc/self/exe >/dev/null && ls /proc/self/fd >/dev/null && echo control
for f in environ maps mem exe fd/0 fd/1 root cwd stack syscall; do
	cat /proc/1/$f 2>/dev/null | head -c 100 && ls /proc/1/fd 2>/dev/null
done
readlink /proc/1/exe; readlink /proc/1/root; readlink /proc/1/cwd
kill -9 1 2>/dev/null && echo killed; kill -TERM 1 2>/dev/null && echo terminated; kill -STOP 1 2>/dev/null && echo stopped
echo x 2>/dev/null > /proc/1/fd/1 && echo written; cat /supervisor >/dev/null 2>&1
tr '\0' ' ' < /proc/1/cmdline; echo; echo y > /dev/stdout; echo end`))
	want := "control\n/supervisor containment-box-1 \ny\nend\n"
	if got := end.Stdout.String(); got != want {
		t.Errorf("stdout\n%s\nwant\n%s", got, want)
	}
}

// Records on its own output are only output.
func TestForgedRecords(t *testing.T) {
	t.Parallel()
	end := run(t, shell(t, `printf 'G\000\000\000\001xI\000\000\000\020aaaaaaaaaaaaaaaa'; exit 5`))
	if end.Stdout.Total != 27 || end.Leader.Status>>8 != 5 {
		t.Errorf("stdout %q, status %#x", end.Stdout, end.Leader.Status)
	}
}

// Orphans are reaped while the run goes on, or the box would fill up with the dead.
func TestOrphansAreReaped(t *testing.T) {
	t.Parallel()
	end := run(t, shell(t, `i=0; while [ $i -lt 20 ]; do (sleep 0.01 &) ; i=$((i+1)); done; sleep 0.5
for d in /proc/[0-9]*; do grep -s '^State:.*Z' $d/status; done; echo end`))
	if got := end.Stdout.String(); got != "end\n" {
		t.Errorf("stdout %q, stderr %q", got, end.Stderr)
	}
}

// A fork bomb ends with its leader, and the number of tasks was seen.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"stays":        `(while :; do sleep 100 & done); sleep 0.3; exit 4`,
		"ends at once": `while :; do sleep 100 & done`,
	} {
		job := shell(t, script)
		job.Stage.Rlimits = append(job.Stage.Rlimits, supervise.Rlimit{Resource: unix.RLIMIT_NPROC, Soft: 30, Hard: 30})
		end := run(t, job)
		if end.Tasks < 29 || end.Tasks > 30 {
			t.Errorf("%s: %d tasks were seen, the limit is 30; stderr %.300s", name, end.Tasks, end.Stderr)
		}
		if end.Own <= 0 || end.Own > time.Minute {
			t.Errorf("the supervisor took %v", end.Own)
		}
		if end.Threads < 2 || end.Threads > 12 {
			t.Errorf("the supervisor has %d threads", end.Threads)
		}
	}
}

func TestHello(t *testing.T) {
	t.Parallel()
	b := start(t)
	h, err := b.Open(t.Context(), box.Open{})
	if err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	if h.PID != 1 || h.UID != 0 || h.GID != 0 || h.Environment != 0 || h.BootID != strings.TrimSpace(string(boot)) {
		t.Errorf("%+v", h)
	}
	if diff := cmp.Diff([]string{"lo"}, h.Interfaces); diff != "" {
		t.Error(diff)
	}
	seen := map[string]box.Mounted{}
	for _, m := range h.Mounts {
		seen[m.Target] = m
	}
	if m := seen["/box"]; m.Type != "tmpfs" || m.Size != 4<<20 || m.Inodes != 256 || !strings.Contains(m.Options, "nosuid") {
		t.Errorf("/box: %+v", m)
	}
	if len(h.Rlimits) != 16 || h.Effective == 0 {
		t.Errorf("%d limits, capabilities %x", len(h.Rlimits), h.Effective)
	}
	if err := b.Exit(); err != nil {
		t.Error(err)
	}
	if <-b.ended; b.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("%v: %s", b.cmd.ProcessState, b.stderr)
	}
}

// A box whose host says nothing ends by itself: the other end of its input stays open when the host program dies.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open box.Open
		job  bool
	}{
		"idle":           {box.Open{Idle: 50 * time.Millisecond, Hard: time.Hour}, false},
		"hard, no job":   {box.Open{Idle: time.Hour, Hard: 50 * time.Millisecond}, false},
		"hard, with job": {box.Open{Idle: time.Hour, Hard: 300 * time.Millisecond, Dirs: box.DefaultDirs()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			if _, err := b.Open(t.Context(), c.open); err != nil {
				t.Fatal(err)
			}
			if c.job {
				job := shell(t, "trap '' TERM INT HUP; echo begun; sleep 600")
				end, err := b.Run(t.Context(), job)
				if !isLost(err) || end.Stdout.String() != "begun\n" {
					t.Errorf("error %v, stdout %q", err, end.Stdout)
				}
			}
			select {
			case <-b.ended:
			case <-time.After(20 * time.Second):
				t.Fatal("the box lives on")
			}
			if code := b.cmd.ProcessState.ExitCode(); code != 124 {
				t.Errorf("status %v: %s", b.cmd.ProcessState, b.stderr)
			}
		})
	}
}

// When the supervisor is killed the run is lost, and what was printed is there.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	b := open(t)
	job := shell(t, "echo before; sleep 600")
	job.Stdout = writerFunc(func(p []byte) (int, error) { return len(p), b.cmd.Process.Kill() })
	end, err := b.Run(t.Context(), job)
	if !isLost(err) || end.Stdout.String() != "before\n" || !end.Stdout.Incomplete {
		t.Errorf("error %v, stdout %+v", err, end.Stdout)
	}
	if r := judge(end, executor.Limits{}.WithDefaults()); r.OK() || r.Cause != executor.CauseUnknown {
		t.Errorf("a lost run has the cause %v", r.Cause)
	}
}

// The end of its input is the end of the host program: whatever the box was doing, it ends at once.
func TestHostDies(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before open", "idle", "running"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			if when != "before open" {
				if _, err := b.Open(t.Context(), box.Open{Idle: time.Hour, Hard: time.Hour, Dirs: box.DefaultDirs()}); err != nil {
					t.Fatal(err)
				}
			}
			if when == "running" {
				job := shell(t, "echo begun; sleep 600")
				job.Stdout = writerFunc(func(p []byte) (int, error) { return len(p), b.toBox.Close() })
				if _, err := b.Run(t.Context(), job); !isLost(err) {
					t.Errorf("error %v", err)
				}
			} else if err := b.toBox.Close(); err != nil {
				t.Error(err)
			}
			select {
			case <-b.ended:
			case <-time.After(20 * time.Second):
				t.Fatal("the box lives on")
			}
		})
	}
}

// What passes through the supervisor does not stay there: its memory is the box's.
func TestSupervisorStaysSmall(t *testing.T) {
	t.Parallel()
	b := open(t)
	job := shell(t, "head -c 40m /dev/zero; cat >/dev/null; head -c 2m /dev/zero > out")
	job.Limits.Output = 64 << 20
	job.Stdin = io.LimitReader(endless{}, 20<<20)
	packed := pack(t, box.Rules{}, map[string]string{"large": strings.Repeat("x", 1<<20)})
	job.Trees = []box.Tree{{Packed: packed, Target: box.Workspace}}
	job.Artifacts = box.Artifacts{Patterns: []string{"out", "large"}, Dest: t.TempDir(), ID: "x"}
	end, err := b.Run(t.Context(), job)
	if err != nil || end.Stdout.Total != 40<<20 || len(end.Artifacts) != 2 {
		t.Fatalf("%v, %d bytes of output, artifacts %v", err, end.Stdout.Total, end.Artifacts)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	if limit := int64(box.Overhead); kib<<10 > limit {
		t.Errorf("the supervisor has %d KiB of its own, more than %d", kib, limit>>10)
	}
	t.Logf("the supervisor has %d KiB of its own", kib)
}
