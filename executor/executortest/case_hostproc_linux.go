// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/evoseal/containment/executor"
)

// hostProcessCases attack a process of the caller that runs beside the executor: the victim.
func hostProcessCases() []Case {
	return []Case{
		attack("signal-host", "a run that can signal the host's processes can stop whoever watches it",
			executor.UnprivilegedUser, signalHost),
		attack("signal-supervisor", "a run must not reach the process that will judge it",
			executor.UnprivilegedUser, signalSupervisor),
		attack("ptrace-host", "whoever may trace a process reads its memory and writes its code",
			executor.UnprivilegedUser, ptraceHost),
		attack("env-proc", "the environment of every process of the same user can be read in /proc, a launcher's too",
			executor.HostEnvHidden, procLeak("environ")),
		attack("argv-proc", "arguments of all processes can be read in /proc, and many carry secrets",
			executor.HostEnvHidden, procLeak("cmdline")),
		attack("processes", "the names of the host's processes tell what runs there",
			executor.HostEnvHidden, procLeak("comm")),
		attack("hostname", "the host's name identifies it", executor.HostEnvHidden, hostname),
		attack("oom-score", "a setting of a host process is state outside the run",
			executor.WorkspaceIsolated, oomScore),
		attack("runtime-exe", "/proc/PID/exe leads to the host's own programs (CVE-2019-5736)",
			executor.WorkspaceIsolated, runtimeExe),
	}
}

// signalHost takes the verdict from the victim: it lives or not.
func signalHost(s *scene) error {
	v, err := s.victim()
	if err != nil {
		return err
	}
	if _, err := s.reach(s.spec("kill", job{Pid: v.pid, N: int64(syscall.SIGTERM)})); err != nil {
		return err
	}
	if v.died() {
		return s.breach("the payload killed a process of the host")
	}
	return nil
}

// signalSupervisor sends a signal that does nothing and that this process listens for.
func signalSupervisor(s *scene) error {
	got := make(chan os.Signal, 8)
	signal.Notify(got, syscall.SIGWINCH)
	defer signal.Stop(got)
	if _, err := s.reach(s.spec("kill", job{Pid: os.Getpid(), N: int64(syscall.SIGWINCH)})); err != nil {
		return err
	}
	select {
	case <-got:
		return s.breach("the payload signalled the process that judges it")
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}

// ptraceHost looks for a secret that is nowhere but in the victim's memory.
func ptraceHost(s *scene) error {
	v, err := s.victim()
	if err != nil {
		return err
	}
	res, err := s.reach(s.spec("ptrace", job{Pid: v.pid, Addr: v.memAddr, N: int64(len(v.memValue))}))
	if err != nil {
		return err
	}
	out := res.Stdout.Bytes()
	if strings.Contains(string(out), v.memValue) {
		return s.breach("the payload read the memory of a process of the host: %q", answers(out, "by"))
	}
	return nil
}

// procLeak looks for one kind of trace of the victim in /proc. What the environment of this process got since its start
// is looked for too: a launcher that inherits it shows it.
func procLeak(kind string) probe {
	return func(s *scene) error {
		v, err := s.victim()
		if err != nil {
			return err
		}
		launcher := randomHex(16)
		if err := s.setenv(v.envName, launcher); err != nil {
			return s.fault(err)
		}
		spec := s.spec("scan-proc", job{Name: kind, Paths: []string{v.envName + "=", argPrefix}})
		res, err := s.reach(spec)
		if err != nil {
			return err
		}
		out := res.Stdout.String()
		secrets := map[string]string{"environ": v.envValue, "cmdline": v.argValue, "comm": v.comm}
		switch {
		case strings.Contains(out, secrets[kind]):
			return s.breach("%s of a process of the host can be read", kind)
		case kind == "environ" && strings.Contains(out, launcher):
			return s.breach("a launcher's environment holds the host's variables")
		}
		return nil
	}
}

// hostname compares; that a run has another name is all that it may know.
func hostname(s *scene) error {
	ours, err := os.Hostname()
	if err != nil {
		return s.fault(err)
	}
	res, err := s.reach(s.spec("hostname", job{}))
	if err != nil {
		return err
	}
	if got := answers(res.Stdout.Bytes(), "hostname"); len(got) == 1 && got[0] == ours {
		return s.breach("the run sees the host's name")
	}
	return nil
}

// oomScore raises the victim's chance to be killed, which needs no privilege but the same user.
func oomScore(s *scene) error {
	v, err := s.victim()
	if err != nil {
		return err
	}
	path := "/proc/" + strconv.Itoa(v.pid) + "/oom_score_adj"
	if _, err := s.reach(s.spec("write", job{Paths: []string{path}, Text: "987"})); err != nil {
		return err
	}
	now, err := os.ReadFile(path)
	if err != nil {
		return s.fault(err)
	}
	if strings.TrimSpace(string(now)) == "987" {
		return s.breach("the payload changed the settings of a process of the host")
	}
	return nil
}

// runtimeExe gives the victim a program of its own and tries to change that program through the victim.
func runtimeExe(s *scene) error {
	v, err := s.victim()
	if err != nil {
		return err
	}
	own, err := s.plant("own", "#!/nothing\n", 0o644)
	if err != nil {
		return s.fault(err)
	}
	link := "/proc/" + strconv.Itoa(v.pid) + "/cwd/own"
	res, err := s.reach(s.spec("meta", job{Paths: []string{link, "/proc/" + strconv.Itoa(v.pid) + "/root" + own}}))
	if err != nil {
		return err
	}
	fi, err := os.Stat(own)
	if err != nil {
		return s.fault(err)
	}
	if fi.Mode().Perm() != 0o644 {
		return s.breach("the payload changed a file of the host through a process: %q", answers(res.Stdout.Bytes(), "chmod"))
	}
	return nil
}
