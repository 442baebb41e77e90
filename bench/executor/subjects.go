// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/executor/rlimit"
)

const (
	plain     = "fork and exec"
	byPrlimit = "setpriv, prlimit"
	byBwrap   = "setpriv, bwrap"
)

// prepare makes the executors and their peers. What this host lacks is a subject with a reason. The function that it
// returns ends the executors.
func prepare(ctx context.Context, dir string) ([]subject, func() error, error) {
	workspace := dir + "/workspace"
	if err := os.Mkdir(workspace, 0o755); err != nil {
		return nil, nil, err
	}
	// The peers' uid must get in.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, nil, err
	}
	var closers []io.Closer
	done := func() (err error) {
		for _, c := range closers {
			err = errors.Join(err, c.Close())
		}
		return err
	}
	ours := func(name, peer string, ex executor.Executor, err error) subject {
		if err != nil {
			return subject{name: name, why: err}
		}
		if c, ok := ex.(io.Closer); ok {
			closers = append(closers, c)
		}
		return subject{name: name, peer: peer, run: func(ctx context.Context) error { return runIn(ctx, ex, workspace) }}
	}
	tier1, err := rlimit.New(ctx, rlimit.Config{})
	subjects := []subject{command(plain, []string{"/bin/true"}, "/bin/true")}
	subjects = append(subjects, command(byPrlimit, prlimitArgs(), "setpriv", "prlimit"), ours("rlimit", byPrlimit, tier1, err))
	tier15, err := bubblewrap.New(ctx, bubblewrap.Config{})
	subjects = append(subjects, command(byBwrap, bwrapArgs(workspace), "setpriv", "bwrap"), ours("bubblewrap", byBwrap, tier15, err))
	containers, err := containerSubjects(ctx, dir, ours)
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return append(subjects, containers...), done, nil
}

func runIn(ctx context.Context, ex executor.Executor, workspace string) error {
	r, err := ex.Run(ctx, executor.Spec{Args: []string{"/bin/true"}, Workspace: workspace})
	if err == nil && !r.OK() {
		err = fmt.Errorf("ended by %v: %s", r.Cause, r.Detail)
	}
	return err
}

// command is a subject that starts a program with an empty environment.
func command(name string, args []string, needs ...string) subject {
	for _, program := range needs {
		if _, err := exec.LookPath(program); err != nil {
			return subject{name: name, why: err}
		}
	}
	return subject{name: name, run: func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = []string{}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}}
}

// asNobody changes the uid if the caller may, since that is what the executors do then.
func asNobody(args ...string) []string {
	start := []string{"setpriv", "--no-new-privs"}
	if os.Getuid() == 0 {
		start = append(start, "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
	}
	return append(start, args...)
}

func prlimitArgs() []string {
	return asNobody("prlimit", "--nofile=1024", "--fsize=268435456", "--core=0", "--data=1073741824", "/bin/true")
}

// bwrapArgs asks for what package bubblewrap asks for: the same namespaces, a view of the same directories, the same
// number of sized file systems.
func bwrapArgs(workspace string) []string {
	args := asNobody("bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--cap-drop", "ALL",
		"--clearenv", "--hostname", "containment", "--uid", "1000", "--gid", "1000")
	for _, path := range bubblewrap.DefaultReads() {
		if fi, err := os.Lstat(path); err != nil {
			continue
		} else if fi.Mode().Type() == os.ModeSymlink {
			if target, err := os.Readlink(path); err == nil {
				args = append(args, "--symlink", target, path)
			}
		} else {
			args = append(args, "--ro-bind", path, path)
		}
	}
	args = append(args, "--ro-bind", "/etc/passwd", "/etc/passwd", "--dev", "/dev", "--proc", "/proc")
	for _, path := range []string{"/tmp", "/home/containment", "/dev/shm"} {
		args = append(args, "--size", "536870912", "--tmpfs", path)
	}
	return append(args, "--bind", workspace, "/workspace", "--remount-ro", "/dev", "--remount-ro", "/",
		"--chdir", "/workspace", "/bin/true")
}
