// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package executortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
)

// A suite that lets a broken executor pass is worse than none, so each mutant is an executor with one flaw, and the
// cases that are about this flaw must fail it with a breach.

// mutant changes what goes into the control, or what comes out of it.
type mutant struct {
	base    control
	claims  executor.Capability
	before  func(*executor.Spec)
	after   func(*executor.Spec, *executor.Result) (*executor.Result, error)
	instead func(context.Context, executor.Spec) (*executor.Result, error)
}

// Capabilities is the claim; nothing stands behind it.
func (m mutant) Capabilities() executor.Capability { return m.claims }

// Run is the control's, but for the flaw.
func (m mutant) Run(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	if m.instead != nil {
		return m.instead(ctx, spec)
	}
	if m.before != nil {
		m.before(&spec)
	}
	res, err := m.base.Run(ctx, spec)
	if err != nil || m.after == nil {
		return res, err
	}
	return m.after(&spec, res)
}

// changed makes a flaw that falsifies results.
func changed(f func(*executor.Result)) func(*executor.Spec, *executor.Result) (*executor.Result, error) {
	return func(_ *executor.Spec, res *executor.Result) (*executor.Result, error) { f(res); return res, nil }
}

// unprotected says for each capability what catches an executor that claims it and has nothing.
var unprotected = map[executor.Capability][]string{
	executor.CleanEnv:      {"env-exact", "env-override", "fds", "fd-directory", "fd-socket"},
	executor.HostEnvHidden: {"env-proc", "argv-proc", "processes", "hostname"},
	executor.TreeKilled:    {"daemon", "daemon-deaf", "daemon-many", "exec-daemon", "late-write", "timeout-tree"},
	executor.OutputBounded: {"output-flood", "output-flood-stderr", "output-exact", "hold-pipe", "hold-pipe-exit"},
	executor.WorkspaceIsolated: {"write-host", "write-original", "remove-host", "metadata-host", "oom-score", "sysctl",
		"sysv-host"},
	executor.ProtectedReadOnly: {"protected-write", "protected-chmod", "protected-rename", "protected-parent",
		"overlay-protected"},
	executor.HostFilesHidden:  {"read-secret", "read-original", "read-magic", "read-link"},
	executor.NetworkOff:       {"tcp", "udp", "mptcp", "abstract-unix", "dns", "bind-host"},
	executor.UnprivilegedUser: {"signal-host", "signal-supervisor", "ptrace-host", "launcher-fds"},
	executor.NoNewPrivileges:  {"no-new-privs", "setuid-file"},
	executor.SyscallsFiltered: {"seccomp-mode", "call-vsock", "call-tty-ioctl", "call-ptrace", "call-nested-userns"},
	executor.MemoryBounded:    {"oom-cause", "oom-child", "mem-tree"},
	executor.ProcessesBounded: {"fork-bomb", "fork-bomb-default"},
	executor.CPUBounded:       {"cpu-one", "cpu-tree", "cpu-orphans", "cpu-short"},
	executor.DiskBounded:      {"tmp-full", "workspace-full", "shm-full", "disk-mounts"},
	executor.MinimalRoot:      {"minimal-root"},
	executor.FreshPerRun:      {"fresh-files", "fresh-ipc"},
	executor.OwnKernel:        {"own-kernel"},
}

// TestEmptyPromises: one mutant per capability, which claims exactly that one and protects nothing.
func TestEmptyPromises(t *testing.T) {
	t.Cleanup(keepTemplate()) // the parallel subtests run when this function has returned
	for one := range executor.AllCapabilities.All() {
		t.Run(one.String(), func(t *testing.T) {
			t.Parallel()
			if len(unprotected[one]) == 0 {
				t.Fatalf("no case is named that catches an empty promise of %v", one)
			}
			mustFail(t, mutant{claims: one}, one, unprotected[one]...)
		})
	}
}

// mustFail demands a breach, not merely a failure, from each named case. The control is not needed here: these mutants
// are no better than it, so a breach shows just what the control would. Like the control they may be missed a few times.
func mustFail(t *testing.T, ex executor.Executor, about executor.Capability, names ...string) {
	t.Helper()
	for _, name := range names {
		c := caseNamed(t, name)
		if !c.Needs.Has(about) {
			t.Errorf("%s is not about %v", name, about)
		}
		c.Check = c.once
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var err error
			for try := 0; err == nil && try < controlTries; try++ {
				_, err = verdict(t.Context(), c, ex)
			}
			if !errors.Is(err, ErrBreach) {
				t.Errorf("it is not caught: %v", err)
			}
		})
	}
}

// caseNamed fails the test for a name that nobody has, so that a renamed case is not lost.
func caseNamed(t *testing.T, name string) Case {
	t.Helper()
	for _, c := range Cases() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no case is called %s", name)
	return Case{}
}

// TestMutants: flaws that are no missing protection, but a wrong answer.
func TestMutants(t *testing.T) {
	t.Cleanup(keepTemplate())
	for name, m := range flawed() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustFail(t, m.mutant, 0, m.caught...)
		})
	}
}

type flaw struct {
	mutant mutant
	caught []string
}

// flawed lists the mutants and what catches each of them: those that run wrongly, here, and those that answer wrongly.
func flawed() map[string]flaw {
	all := wrongAnswers()
	maps.Copy(all, map[string]flaw{
		"edits the original": {mutant{base: control{inPlace: true}},
			[]string{"workspace-private", "workspace-fresh", "workspace-parallel"}},
		"shares its temporary directory": {mutant{base: control{sharedTmp: true}}, []string{"tmpdir-private", "home-tmp"}},
		"follows links in artifacts":     {mutant{}, []string{"art-link", "art-linkdir", "art-hardlink", "art-race"}},
		"returns any artifact": {mutant{},
			[]string{"art-git", "art-modes", "art-bytes", "art-files", "art-depth", "art-sparse"}},
		"does not know its limits": {mutant{before: twoSeconds}, []string{"wall"}},
		"uses a shell":             {mutant{before: throughShell}, []string{"argv-exact"}},
		"adds an input":            {mutant{before: otherInput}, []string{"stdin-empty", "stdin-exact"}},
		"starts somewhere else":    {mutant{before: func(s *executor.Spec) { s.Dir = "" }}, []string{"dir-missing"}},
		"copies what is hidden":    {mutant{before: hidesNothing}, []string{"workspace-hidden", "dir-hidden"}},
		"ignores the overlay": {mutant{before: func(s *executor.Spec) { s.Overlay = "" }},
			[]string{"overlay-file", "overlay-link", "overlay-directory", "overlay-hidden", "overlay-refuses"}},
		"follows links of an overlay":      {mutant{base: control{followed: true}}, []string{"overlay-link", "overlay-refuses"}},
		"lays the overlay over all rules":  {mutant{base: control{late: true}}, []string{"overlay-hidden"}},
		"lays the overlay on the original": {mutant{base: control{inPlace: true}}, []string{"overlay-file", "overlay-private"}},
		"does not validate":                {mutant{instead: runsWhatever}, []string{"spec-faults", "spec-single", "require-undefined"}},
		"ignores its context":              {mutant{instead: withoutContext}, []string{"cancel-before"}},
		"ignores Require": {mutant{},
			[]string{"require", "readonly-needs", "env-exact", "own-kernel", "daemon", "tcp"}},
		"starts, then refuses":     {mutant{after: startsThenRefuses}, []string{"require", "env-exact", "own-kernel"}},
		"refuses in its own words": {mutant{instead: refusesOddly}, []string{"require", "env-exact"}},
		"mixes runs up":            {mutant{base: control{inPlace: true}, before: sharedEnv}, []string{"parallel"}},
	})
	return all
}

// wrongAnswers are mutants that run as they should and report something else.
func wrongAnswers() map[string]flaw {
	outOfMemory := func(r *executor.Result) {
		if r.Signal == syscall.SIGKILL || r.ExitCode == 137 {
			r.Cause = executor.CauseOutOfMemory
		}
	}
	toCode := func(r *executor.Result) {
		if r.Signal != 0 {
			r.Cause, r.ExitCode, r.Signal = executor.CauseExited, 128+int(r.Signal), 0
		}
	}
	toSignal := func(r *executor.Result) {
		if r.ExitCode > 128 {
			r.Cause, r.Signal = executor.CauseSignalled, syscall.Signal(r.ExitCode-128)
		}
	}
	success := func(r *executor.Result) { r.Cause, r.ExitCode, r.Signal = executor.CauseExited, 0, 0 }
	swapped := func(r *executor.Result) { r.Stdout, r.Stderr = r.Stderr, r.Stdout }
	text := func(r *executor.Result) { r.Stdout.Head = bytes.ToValidUTF8(r.Stdout.Head, []byte("?")) }
	silent := func(r *executor.Result) { r.Usage, r.Enforced = executor.Usage{}, nil }
	return map[string]flaw{
		"maps 137 to a lack of memory": {mutant{after: changed(outOfMemory)}, []string{"signal-kill", "exit-137"}},
		"maps signals to exit codes":   {mutant{after: changed(toCode)}, []string{"signal-segv", "signal-abort", "signal-term"}},
		"maps exit codes to signals":   {mutant{after: changed(toSignal)}, []string{"exit-139", "exit-137"}},
		"takes every end for success": {mutant{after: changed(success)},
			[]string{"exit-42", "not-found", "not-executable", "interpreter-missing", "wall", "argv-path"}},
		"mixes up the streams": {mutant{after: changed(swapped)}, []string{"streams"}},
		"makes text of output": {mutant{after: changed(text)}, []string{"streams"}},
		"reports nothing":      {mutant{after: changed(silent)}, []string{"usage", "enforcement-report"}},
	}
}

func twoSeconds(s *executor.Spec) { s.Limits.Wall = max(2*time.Second, 4*s.Limits.Wall) }

func otherInput(s *executor.Spec) { s.Stdin = strings.NewReader("surprise") }

func sharedEnv(s *executor.Spec) { s.Env = nil }

// hidesNothing gives the run what lies under hidden names as well.
func hidesNothing(s *executor.Spec) { s.Hidden = nil }

func refusesOddly(context.Context, executor.Spec) (*executor.Result, error) {
	return nil, errors.New("sorry")
}

// throughShell is how most programs start others.
func throughShell(s *executor.Spec) {
	s.Args = []string{"/bin/sh", "-c", strings.Join(s.Args, " ")}
}

// runsWhatever repairs a specification until it runs.
func runsWhatever(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	fixed := executor.Spec{Args: spec.Args, Workspace: spec.Workspace, Stdin: spec.Stdin, Stdout: spec.Stdout}
	if len(fixed.Args) == 0 {
		return &executor.Result{Cause: executor.CauseExited}, nil
	}
	return control{}.Run(ctx, fixed)
}

// withoutContext is what happens if the context is kept for later.
func withoutContext(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	return control{}.Run(context.WithoutCancel(ctx), spec)
}

// startsThenRefuses looks at the requirement when it is too late.
func startsThenRefuses(spec *executor.Spec, _ *executor.Result) (*executor.Result, error) {
	return nil, &executor.UnsupportedError{Executor: "mutant", Missing: spec.Require, Reason: "noticed late"}
}

// nothing runs nothing and says that all went well.
type nothing struct{}

// Capabilities is the claim; nothing stands behind it.
func (nothing) Capabilities() executor.Capability { return executor.AllCapabilities }

// Run is the control's, but for the flaw.
func (nothing) Run(context.Context, executor.Spec) (*executor.Result, error) {
	return &executor.Result{Cause: executor.CauseExited}, nil
}

// TestNothingNeverPasses: an executor that runs nothing withstands every attack, and must pass no case at all.
func TestNothingNeverPasses(t *testing.T) {
	t.Cleanup(keepTemplate())
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if c.once(t.Context(), nothing{}) == nil {
				t.Error("an executor that runs nothing passes")
			}
		})
	}
}

// TestSupervisorKillCatches: without any protection the tree lives on when its supervisor is killed.
func TestSupervisorKillCatches(t *testing.T) {
	newExecutor := func(*testing.T) executor.Executor { return control{} }
	if supervised(t, newExecutor) {
		return
	}
	if err := killSupervisor(t.Context(), t.Name(), 100*time.Millisecond); !errors.Is(err, ErrBreach) {
		t.Errorf("a tree that outlives its supervisor gives %v", err)
	}
}

// TestControlIsCached: the control of a case runs once per process.
func TestControlIsCached(t *testing.T) {
	runs := 0
	c := attack("cached", "", 0, func(s *scene) error {
		if s.control {
			runs++
			return s.breach("as it should")
		}
		return nil
	})
	for range 3 {
		if err := c.Check(t.Context(), control{}); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 1 {
		t.Errorf("the control ran %d times", runs)
	}
}

// TestControlMayMiss: an attack that hits now and then is an attack, and a few misses are not held against the executor.
func TestControlMayMiss(t *testing.T) {
	for _, c := range []struct {
		misses int
		want   error
	}{{0, nil}, {controlTries - 1, nil}, {controlTries, ErrInconclusive}} {
		runs := 0
		err := attack(fmt.Sprintf("misses-%d", c.misses), "", 0, func(s *scene) error {
			if runs++; s.control && runs > c.misses {
				return s.breach("as it should")
			}
			return nil
		}).Check(t.Context(), control{})
		if !errors.Is(err, c.want) {
			t.Errorf("%d misses give %v, want %v", c.misses, err, c.want)
		}
		if limit := controlTries + 1; runs > limit {
			t.Errorf("%d misses took %d runs, more than %d", c.misses, runs, limit)
		}
	}
}

// TestLateIsConfirmed: being late is a breach if it happens each time. Every other breach is one at once.
func TestLateIsConfirmed(t *testing.T) {
	for name, c := range map[string]struct {
		late, runs int
		breach     bool
		want       error
	}{
		"punctual": {0, 1, false, nil}, "late twice": {lateTries - 1, lateTries, false, nil},
		"late": {lateTries, lateTries, false, ErrBreach}, "broken": {0, 1, true, ErrBreach},
		"late, then broken": {1, 2, true, ErrBreach},
	} {
		runs := 0
		err := check("late", "", 0, func(s *scene) error {
			switch runs++; {
			case runs <= c.late:
				return s.tooLate("as it should")
			case c.breach:
				return s.breach("as it should")
			}
			return nil
		}).Check(t.Context(), control{})
		if !errors.Is(err, c.want) || runs != c.runs {
			t.Errorf("%s: %v after %d runs, want %v after %d", name, err, runs, c.want, c.runs)
		}
	}
}
