// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

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

// naive is how most programs start what they do not trust: on a copy of the directory, with an environment of its own, in a
// process group that is killed in the end, with files that must not change made read-only. Its author believes that this
// is at least three capabilities.
type naive struct{ claims executor.Capability }

// Capabilities is what the author believes.
func (n naive) Capabilities() executor.Capability { return n.claims }

// Run is careful code, as far as it goes.
func (n naive) Run(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if missing := n.claims.Missing(spec.Required()); missing != 0 {
		return nil, &executor.UnsupportedError{
			Executor: "naive", Missing: missing, Reason: "os/exec has nothing for it", Fix: "take another executor",
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "naive-")
	if err != nil {
		return nil, &executor.SetupError{Step: "workspace", Err: err}
	}
	defer os.RemoveAll(dir)
	if err := prepare(dir, spec); err != nil {
		return nil, &executor.SetupError{Step: "workspace", Err: err}
	}
	return start(ctx, dir, spec), nil
}

// prepare copies the workspace, removes what is hidden, and takes the right to write from what is protected.
func prepare(dir string, spec executor.Spec) error {
	ws := filepath.Join(dir, "ws")
	err := errors.Join(os.CopyFS(ws, os.DirFS(spec.Workspace)), os.MkdirAll(filepath.Join(dir, "tmp"), 0o700))
	for _, name := range append(executor.DefaultHidden(), spec.Hidden...) {
		err = errors.Join(err, os.RemoveAll(filepath.Join(ws, name)))
	}
	for _, name := range spec.ReadOnly {
		if e := os.Chmod(filepath.Join(ws, name), 0o444); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// start runs the command and kills its process group when it ends or its time is up.
func start(ctx context.Context, dir string, spec executor.Spec) *executor.Result {
	limits := spec.Limits.WithDefaults()
	wall, cancel := context.WithTimeout(ctx, limits.Wall)
	defer cancel()
	path := spec.Args[0]
	if !strings.Contains(path, "/") {
		path = filepath.Join("/usr/bin", path)
	}
	cmd := exec.CommandContext(wall, path)
	cmd.Args, cmd.Dir = spec.Args, filepath.Join(dir, "ws", spec.Dir)
	cmd.Env = spec.Environ(filepath.Join(dir, "tmp"), filepath.Join(dir, "tmp"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	cmd.Stdin = spec.Stdin
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = both(&out, spec.Stdout), both(&errs, spec.Stderr)

	begin := time.Now()
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	r := &executor.Result{ExitCode: -1, Usage: executor.Usage{Wall: time.Since(begin)}}
	r.Stdout = executor.Output{Head: out.Bytes(), Total: int64(out.Len())}
	r.Stderr = executor.Output{Head: errs.Bytes(), Total: int64(errs.Len())}
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		r.Cause, r.Signal = executor.CauseCancelled, syscall.SIGKILL
	case wall.Err() != nil:
		r.Cause, r.Signal = executor.CauseWallTimeout, syscall.SIGKILL
	case err == nil:
		r.Cause, r.ExitCode = executor.CauseExited, 0
	case exited && exit.Exited():
		r.Cause, r.ExitCode = executor.CauseExited, exit.ExitCode()
	case exited:
		r.Cause, r.Signal = executor.CauseSignalled, exit.Sys().(syscall.WaitStatus).Signal()
	case errors.Is(err, os.ErrNotExist):
		r.Cause = executor.CauseNotFound
	default:
		r.Cause = executor.CauseNotExecutable
	}
	return r
}

// both writes to the live writer as well, if there is one.
func both(buffer *bytes.Buffer, live io.Writer) io.Writer {
	if live == nil {
		return buffer
	}
	return io.MultiWriter(buffer, live)
}
