// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/isolation"
)

// plain runs a command on a copy of the workspace and confines nothing. It holds what every executor must, so that what
// it is refused for is the capability that it claims.
type plain struct {
	claims executor.Capability
}

func (p plain) Capabilities() executor.Capability { return p.claims }

func (p plain) Run(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	if err := errors.Join(spec.Validate(), ctx.Err()); err != nil {
		return nil, err
	}
	if missing := p.claims.Missing(spec.Required()); missing != 0 {
		return nil, &executor.UnsupportedError{Executor: "plain", Missing: missing}
	}
	dir, err := os.MkdirTemp(filepath.Dir(spec.Workspace), "plain-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ws, home := filepath.Join(dir, "ws"), filepath.Join(dir, "home")
	if err := errors.Join(os.CopyFS(ws, os.DirFS(spec.Workspace)), os.Mkdir(home, 0o755)); err != nil {
		return nil, err
	}
	return execute(ctx, spec, ws, home), nil
}

// execute is os/exec as a program uses it that trusts what it starts.
func execute(ctx context.Context, spec executor.Spec, ws, home string) *executor.Result {
	limits := spec.Limits.WithDefaults()
	ctx, cancel := context.WithTimeout(ctx, limits.Wall)
	defer cancel()
	cmd := exec.CommandContext(ctx, spec.Args[0])
	cmd.Args, cmd.Dir, cmd.Env = spec.Args, ws, spec.Environ(home, home)
	cmd.WaitDelay = 3 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = spec.Stdin, both(&out, spec.Stdout), both(&errs, spec.Stderr)
	start := time.Now()
	err := cmd.Run()
	res := &executor.Result{Cause: executor.CauseExited, Usage: executor.Usage{Wall: time.Since(start)}}
	res.Stdout = executor.Output{Head: out.Bytes(), Total: int64(out.Len())}
	res.Stderr = executor.Output{Head: errs.Bytes(), Total: int64(errs.Len())}
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		status, _ := exit.Sys().(syscall.WaitStatus)
		if res.ExitCode = status.ExitStatus(); status.Signaled() {
			res.Cause, res.Signal = executor.CauseSignalled, status.Signal()
		}
	}
	if ctx.Err() != nil {
		res.Cause, res.ExitCode = executor.CauseWallTimeout, -1
	}
	return res
}

func both(kept *bytes.Buffer, live io.Writer) io.Writer {
	if live == nil {
		return kept
	}
	return io.MultiWriter(kept, live)
}

// flawed is a real executor with one flaw, which claims that it has none.
type flawed struct {
	executor.Executor
	claims  executor.Capability
	weaken  func(*executor.Spec)
	outside []string // payloads that run without any confinement
}

func (f flawed) Capabilities() executor.Capability { return f.Executor.Capabilities() | f.claims }

func (f flawed) Run(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	if len(spec.Args) > 2 && slices.Contains(f.outside, spec.Args[2]) {
		return plain{f.Capabilities()}.Run(ctx, spec)
	}
	spec.Require &^= f.claims
	if f.weaken != nil {
		f.weaken(&spec)
	}
	return f.Executor.Run(ctx, spec)
}

// flaws has one for each capability.
var flaws = map[executor.Capability]flawed{
	executor.CleanEnv: {weaken: func(s *executor.Spec) {
		s.Env = map[string]string{"SECRET": "in the environment of every run"}
	}},
	executor.HostEnvHidden:     {outside: []string{"scan-proc"}},
	executor.TreeKilled:        {outside: []string{"forks"}},
	executor.OutputBounded:     {weaken: func(s *executor.Spec) { s.Limits.Output = 1 << 30 }},
	executor.WorkspaceIsolated: {outside: []string{"write", "meta"}},
	executor.ProtectedReadOnly: {weaken: func(s *executor.Spec) { s.ReadOnly = nil }},
	executor.HostFilesHidden: {weaken: func(s *executor.Spec) {
		if home := filepath.Join(filepath.Dir(s.Workspace), "home"); exists(home) {
			s.Mounts = append(s.Mounts, executor.Mount{Source: home})
		}
	}},
	executor.NetworkOff:       {outside: []string{"dial"}},
	executor.UnprivilegedUser: {outside: []string{"kill", "launcher", "status"}},
	executor.NoNewPrivileges:  {outside: []string{"status", "setuid"}},
	executor.SyscallsFiltered: {outside: []string{"calls"}},
	executor.MemoryBounded:    {weaken: func(s *executor.Spec) { s.Limits.Memory = 4 << 30 }},
	executor.ProcessesBounded: {weaken: func(s *executor.Spec) { s.Limits.Processes = 1 << 12 }},
	executor.CPUBounded:       {weaken: func(s *executor.Spec) { s.Limits.CPU = time.Minute }},
	executor.DiskBounded:      {weaken: func(s *executor.Spec) { s.Limits.Disk = 1 << 30 }},
	executor.MinimalRoot:      {},
	executor.FreshPerRun:      {outside: []string{"write", "read"}},
	executor.OwnKernel:        {},
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func confined(t testing.TB) *bubblewrap.Executor {
	t.Helper()
	testenv.Need(t, "bubblewrap")
	ex, err := bubblewrap.New(t.Context(), bubblewrap.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ex.Close(); err != nil {
			t.Error(err)
		}
	})
	return ex
}

// patient gives a loaded machine the time that it needs.
func patient(needs executor.Capability) *isolation.VerifyOptions {
	return &isolation.VerifyOptions{Needs: needs, Timeout: time.Minute}
}

// A broken executor of each kind is refused, for what is broken, by an attack that had its effect. Each of some hundred
// runs copies this binary, which is large with the race detector in it; some of the kinds are enough to find races.
func TestVerifyRefusesEachFlaw(t *testing.T) {
	real, kinds := confined(t), executor.AllCapabilities
	if race {
		kinds = executor.CleanEnv | executor.TreeKilled | executor.NetworkOff
	}
	for one := range kinds.All() {
		t.Run(one.String(), func(t *testing.T) {
			f, known := flaws[one]
			if !known {
				t.Fatalf("there is no executor without %v", one)
			}
			f.Executor, f.claims = real, one
			r, err := isolation.Verify(t.Context(), f, patient(one))
			refused, ok := errors.AsType[*isolation.VerifyError](err)
			if !ok || !errors.Is(err, isolation.ErrUnproven) {
				t.Fatalf("it was not refused: %v, proven %v", err, r.Proven)
			}
			if refused.Unproven != one || refused.Unclaimed != 0 || r.Proven != 0 {
				t.Errorf("refused for %v and %v, proven %v", refused.Unproven, refused.Unclaimed, r.Proven)
			}
			broken := func(p isolation.Probe) bool { return p.Result == isolation.Broken && p.Capability.Has(one) }
			if !slices.ContainsFunc(r.Probes, broken) || len(refused.Failed) == 0 {
				t.Errorf("no attack on it had an effect: %v", err)
			}
			for _, p := range r.Probes {
				if p.Capability == 0 && !p.Proves() {
					t.Errorf("it fails what every executor must hold: %+v", p)
				}
			}
		})
	}
}

// Claims alone are worth nothing, however many.
func TestVerifyRefusesEmptyPromises(t *testing.T) {
	claims := executor.AllCapabilities
	if race {
		claims = isolation.TierGuarded.Needs()
	}
	r, err := isolation.Verify(t.Context(), plain{claims}, patient(0))
	if !errors.Is(err, isolation.ErrUnproven) || r.Needs != claims {
		t.Fatalf("%v, needed %v", err, r.Needs)
	}
	for one := range claims.All() {
		broken := func(p isolation.Probe) bool { return p.Result == isolation.Broken && p.Capability.Has(one) }
		if r.Proven.Has(one) || !slices.ContainsFunc(r.Probes, broken) {
			t.Errorf("%v: proven %v, and no attack on it had an effect", one, r.Proven)
		}
	}
}
