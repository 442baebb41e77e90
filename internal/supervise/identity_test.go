// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/supervise"
	"github.com/evoseal/containment/internal/testenv"
)

// freeUID is a uid that no test of another package uses.
const freeUID = 64911

// status runs cat /proc/self/status and returns its fields.
func status(t *testing.T, job supervise.Job) map[string]string {
	t.Helper()
	job.Programs, job.Args = []string{"/bin/cat"}, []string{"cat", "/proc/self/status"}
	events, out := run(t, job, nil)
	if len(events) == 0 || events[0].Kind != supervise.Started {
		t.Fatalf("events %+v, want started", events)
	}
	fields := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.Join(strings.Fields(value), " ")
	}
	return fields
}

func TestIdentityIsGivenUp(t *testing.T) {
	testenv.Need(t, "root")
	job := shell("")
	job.UID, job.GID, job.Reserved = freeUID, freeUID, true
	job.Rlimits = []supervise.Rlimit{{Resource: unix.RLIMIT_NOFILE, Soft: 77, Hard: 77}}
	got := status(t, job)
	four := fmt.Sprintf("%[1]d %[1]d %[1]d %[1]d", freeUID)
	const none = "0000000000000000"
	for field, want := range map[string]string{
		"Uid": four, "Gid": four, "Groups": "", "NoNewPrivs": "1",
		"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
		"SigBlk": none, "SigIgn": none, "SigCgt": none,
	} {
		if got[field] != want {
			t.Errorf("%s is %q, want %q", field, got[field], want)
		}
	}
}

func TestOrdinaryCallerKeepsItsUID(t *testing.T) {
	got := status(t, shell(""))
	want := fmt.Sprintf("%[1]d %[1]d %[1]d %[1]d", os.Getuid())
	if got["Uid"] != want || got["NoNewPrivs"] != "1" || got["CapEff"] != "0000000000000000" {
		t.Errorf("uid %q, no_new_privs %q, capabilities %q; want %q, 1, none", got["Uid"], got["NoNewPrivs"], got["CapEff"], want)
	}
}

// Descriptors that the host program holds without close-on-exec, low and high, reach neither server nor payload.
func TestDescriptorsEnd(t *testing.T) {
	secret, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	for _, fd := range []int{77, 300, 900} {
		if err := unix.Dup3(int(secret.Fd()), fd, 0); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	events, out := run(t, shell(`cd /proc/self/fd && echo *; cd /proc/$PPID/fd 2>/dev/null && echo *`), nil)
	if len(events) == 0 || events[0].Kind != supervise.Started {
		t.Fatalf("events %+v, want started", events)
	}
	// The shell's own glob opens 3; of the guard the shell may see nothing, or its few low ones.
	for _, fd := range []string{"77", "300", "900"} {
		for f := range strings.FieldsSeq(out) {
			if f == fd {
				t.Errorf("descriptor %s is open in %q", fd, out)
			}
		}
	}
	if first, _, _ := strings.Cut(out, "\n"); !strings.HasPrefix(first, "0 1 2") {
		t.Errorf("descriptors %q, want 0 1 2 first", first)
	}
}

func TestBusyUIDIsRefused(t *testing.T) {
	testenv.Need(t, "root")
	sleeper := exec.Command("sleep", "60")
	sleeper.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: freeUID + 1, Gid: freeUID + 1}}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	}()
	job := shell("exit 0")
	job.UID, job.GID, job.Reserved = freeUID+1, freeUID+1, true
	events, _ := run(t, job, nil)
	if len(events) != 1 || events[0].Kind != supervise.Failed || events[0].Step != supervise.StepUIDBusy {
		t.Errorf("events %+v, want failed at uid busy", events)
	}
	if err := sleeper.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process that had the uid already is gone: %v", err)
	}
}

func TestKillUser(t *testing.T) {
	testenv.Need(t, "root")
	// setsid and an ignored signal: a daemon that only the uid finds.
	cmd := exec.Command("sh", "-c", `trap "" TERM; setsid sh -c 'sleep 60' & sleep 60`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: freeUID + 2, Gid: freeUID + 2}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	list := func() []string {
		out, _ := exec.Command("ps", "-u", fmt.Sprint(freeUID+2), "-o", "stat=").Output()
		return slices.Collect(strings.Lines(string(out)))
	}
	for deadline := time.Now().Add(20 * time.Second); len(list()) < 3 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if n := len(list()); n < 3 {
		t.Fatalf("%d processes have started, of 3", n)
	}
	if err := supervise.KillUser(t.Context(), freeUID+2); err != nil {
		t.Error(err)
	}
	if err := supervise.KillUser(t.Context(), 0); err == nil {
		t.Error("KillUser(0) did not refuse")
	}
	for _, line := range list() {
		if !strings.HasPrefix(line, "Z") {
			t.Errorf("alive: %q", line)
		}
	}
}

// The payload's standard streams are the only thing it shares with the host: no controlling terminal, its own session.
func TestOwnSession(t *testing.T) {
	_, out := run(t, shell(`cat /proc/self/stat; echo; umask`), nil)
	f := strings.Fields(out)
	if len(f) < 8 {
		t.Fatalf("output %q", out)
	}
	// session is the shell's pid, which is not the host's session; tty_nr is 0
	host, err := unix.Getsid(0)
	if err != nil {
		t.Fatal(err)
	}
	if f[5] == fmt.Sprint(host) || f[6] != "0" {
		t.Errorf("session %s (host %d), terminal %s", f[5], host, f[6])
	}
	if got := f[len(f)-1]; got != "0022" {
		t.Errorf("umask %s, want 0022", got)
	}
}

func TestUnreachableMount(t *testing.T) {
	testenv.Need(t, "root")
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	job := shell("exit 0")
	job.UID, job.GID, job.Reserved = freeUID+3, freeUID+3, true
	job.Reachable = []string{"/usr", dir}
	events, _ := run(t, job, nil)
	if len(events) == 0 || events[0].Step != supervise.StepReachable || events[0].Detail != 1 {
		t.Errorf("events %+v, want failed at mount 1", events)
	}
}
