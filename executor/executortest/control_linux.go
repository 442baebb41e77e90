// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/evoseal/containment/executor"
)

// control runs a command the way a program does that gives no thought to containment: os/exec on a copy of the
// workspace, with the host's environment passed on. It honours the plain semantics of the contract and protects nothing.
// Its fields weaken it further, for attacks that a mere copy would withstand.
type control struct {
	inPlace   bool // works on the original workspace
	followed  bool // lays an overlay through links, on either side
	late      bool // lays it over what is hidden
	sharedTmp bool // HOME and TMPDIR are the same for every run of this scene's parent directory
}

// Capabilities claims everything, so that nothing is refused.
func (control) Capabilities() executor.Capability { return executor.AllCapabilities }

// Run obeys what costs nothing: faults, a context that is done, the clock.
func (c control) Run(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	spec.Limits = spec.Limits.WithDefaults()
	scratch, err := os.MkdirTemp(filepath.Dir(spec.Workspace), "control-")
	if err != nil {
		return nil, &executor.SetupError{Step: "scratch", Err: err}
	}
	defer forceRemove(scratch)
	dirs, err := c.prepare(spec, scratch)
	if err != nil {
		return nil, &executor.SetupError{Step: "workspace", Err: err}
	}
	res := c.execute(ctx, spec, dirs)
	extractNaively(res, spec, dirs.ws)
	return res, nil
}

// controlDirs are the directories of one run under the control.
type controlDirs struct{ ws, home, tmp string }

// prepare makes the directories of one run and checks what the specification names.
func (c control) prepare(spec executor.Spec, scratch string) (controlDirs, error) {
	at := func(name string) string { return filepath.Join(scratch, name) }
	dirs := controlDirs{ws: at("ws"), home: at("home"), tmp: at("tmp")}
	if c.sharedTmp {
		shared := filepath.Join(filepath.Dir(spec.Workspace), "shared")
		dirs.home, dirs.tmp = shared, shared
	}
	for _, dir := range []string{dirs.home, dirs.tmp} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return dirs, err
		}
	}
	for _, m := range spec.Mounts {
		if _, err := os.Stat(m.Source); err != nil {
			return dirs, err
		}
	}
	if c.inPlace {
		dirs.ws = spec.Workspace
	} else if err := copyNaively(spec, dirs.ws); err != nil {
		return dirs, err
	}
	if err := c.overlayNaively(spec, dirs.ws); err != nil {
		return dirs, err
	}
	fi, err := os.Stat(filepath.Join(dirs.ws, spec.Dir))
	if err == nil && !fi.IsDir() {
		err = errors.New("the working directory is a file")
	}
	return dirs, err
}

// execute starts the program and waits for it; on a deadline it kills the leader and nothing else, as CommandContext
// does.
func (c control) execute(ctx context.Context, spec executor.Spec, dirs controlDirs) *executor.Result {
	wall, cancel := context.WithTimeout(ctx, spec.Limits.Wall)
	defer cancel()
	start := time.Now()
	var out, errs bytes.Buffer
	err := retryBusy(func() error {
		out.Reset()
		errs.Reset()
		cmd := &exec.Cmd{Path: lookPath(spec, dirs), Args: spec.Args, Dir: filepath.Join(dirs.ws, spec.Dir)}
		cmd = withContext(wall, cmd)
		cmd.Env = append(os.Environ(), spec.Environ(dirs.home, dirs.tmp)...)
		cmd.Stdin = spec.Stdin
		cmd.Stdout, cmd.Stderr = tee(&out, spec.Stdout), tee(&errs, spec.Stderr)
		cmd.WaitDelay = 3 * time.Second
		return cmd.Run()
	})
	res := &executor.Result{ExitCode: -1, Usage: executor.Usage{Wall: time.Since(start)}}
	res.Stdout = executor.Output{Head: out.Bytes(), Total: int64(out.Len())}
	res.Stderr = executor.Output{Head: errs.Bytes(), Total: int64(errs.Len())}
	classify(res, err, ctx.Err(), wall.Err())
	return res
}

// withContext is exec.CommandContext for a path that has been found already.
func withContext(ctx context.Context, c *exec.Cmd) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/")
	cmd.Path, cmd.Args, cmd.Dir, cmd.Err = c.Path, c.Args, c.Dir, nil
	return cmd
}

// tee copies to the live writer as well, without any bound.
func tee(buf *bytes.Buffer, live io.Writer) io.Writer {
	if live == nil {
		return buf
	}
	return io.MultiWriter(buf, live)
}

// classify reads the cause off the wait status, and off the two contexts for what the control did itself.
func classify(res *executor.Result, err, cancelled, late error) {
	var exit *exec.ExitError
	switch {
	case cancelled != nil:
		res.Cause = executor.CauseCancelled
	case late != nil:
		res.Cause = executor.CauseWallTimeout
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		res.Cause, res.ExitCode = executor.CauseExited, 0
	case errors.As(err, &exit):
		status, _ := exit.Sys().(syscall.WaitStatus)
		res.Cause, res.ExitCode = executor.CauseExited, status.ExitStatus()
		if status.Signaled() {
			res.Cause, res.Signal = executor.CauseSignalled, status.Signal()
		}
	case errors.Is(err, syscall.ENOENT):
		res.Cause = executor.CauseNotFound
	default:
		res.Cause = executor.CauseNotExecutable
	}
	if res.Cause == executor.CauseCancelled || res.Cause == executor.CauseWallTimeout {
		res.Signal = syscall.SIGKILL
	}
}

// lookPath resolves a bare name in the run's PATH and leaves anything else to execve.
func lookPath(spec executor.Spec, dirs controlDirs) string {
	name := spec.Args[0]
	if strings.Contains(name, "/") {
		return name
	}
	for _, env := range spec.Environ(dirs.home, dirs.tmp) {
		path, ok := strings.CutPrefix(env, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if found := filepath.Join(dir, name); exists(found) {
				return found
			}
		}
	}
	return "/nonexistent/" + name
}

// exists does not follow links: a dangling one is something too.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// retryBusy repeats a start that met a copy of the program still open for writing in a child that another goroutine is
// just forking (golang/go#22315).
func retryBusy(start func() error) error {
	for try := 0; ; try++ {
		err := start()
		if !errors.Is(err, syscall.ETXTBSY) || try == 100 {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}
