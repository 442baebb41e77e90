// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/evoseal/containment/executor"
)

const (
	probeTime = 30 * time.Second // for one question to a program; even a cold disk needs far less
	buildTime = 30 * time.Minute // for one step of a seed; all of std takes about one minute of two processors
	killTime  = 2 * time.Second
	maxOutput = 8 << 20
	maxShown  = 4 << 10 // of an error output, in messages
)

// command is a program of the host that is run for its output.
type command struct {
	program string
	args    []string
	env     map[string]string
	dir     string // default: the root, where no file of anybody's can change what a program does
	limit   time.Duration
	keep    *os.File // a lock that is held until the last process of the command is gone
}

// output runs the command and returns its standard output.
func (c command) output(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, c.args...)
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Env = []string{} // nil would be the caller's own
	for _, name := range slices.Sorted(maps.Keys(c.env)) {
		cmd.Env = append(cmd.Env, name+"="+c.env[name])
	}
	if c.keep != nil {
		cmd.ExtraFiles = []*os.File{c.keep}
	}
	var stdout, stderr bounded
	stdout.strict = true
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killTime
	err := cmd.Run()
	switch {
	case stdout.lost:
		return nil, fmt.Errorf("%s wrote more than %d bytes", c, maxOutput)
	case ctx.Err() != nil:
		buried(cmd)
		return nil, fmt.Errorf("%s: %w", c, errors.Join(context.Cause(ctx), err))
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %s", c, err, stderr.end())
	}
	return stdout.kept, nil
}

// buried waits until the killed processes are gone, so that they write nowhere any more.
func buried(cmd *exec.Cmd) {
	if cmd.Process == nil {
		return // it was never started
	}
	for end := time.Now().Add(killTime); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if errors.Is(syscall.Kill(-cmd.Process.Pid, 0), syscall.ESRCH) {
			return
		}
	}
}

func (c command) String() string {
	return strings.Join(append([]string{filepath.Base(c.program)}, c.args...), " ")
}

// bounded keeps the beginning of what is written to it. If it is strict, it takes no more: the program then has
// nobody to write to, and ends.
type bounded struct {
	kept         []byte // no bytes.Buffer: io.Copy would find its ReadFrom and go round the bound
	strict, lost bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := maxOutput - len(b.kept)
	b.lost = b.lost || len(p) > room
	b.kept = append(b.kept, p[:min(len(p), room)]...)
	if b.lost && b.strict {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func (b *bounded) end() string {
	text := bytes.TrimSpace(b.kept)
	return string(text[max(0, len(text)-maxShown):])
}

// probe asks a program of the host. It has no environment but a search path, and no home: programs that find one write
// things into it.
func probe(ctx context.Context, program string, args ...string) ([]byte, error) {
	env := map[string]string{"PATH": executor.DefaultPath, "LANG": "C.UTF-8"}
	return command{program: program, args: args, env: env, limit: probeTime}.output(ctx)
}

// find calls try for every program of the host with that name, or for the one that is given, until one is usable.
// What is not trustworthy is never started.
func find(ctx context.Context, name, given, install string, try func(program string) error) error {
	candidates := []string{given}
	if given == "" {
		candidates = onPath(name)
	}
	var reasons []error
	for _, program := range candidates {
		err := errors.Join(trusted(program), executable(program))
		if err == nil {
			err = reachable(program)
		}
		if err == nil {
			err = try(program)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("toolchain: %s: %w", name, err)
		}
		reasons = append(reasons, err)
	}
	return &executor.UnsupportedError{
		Executor: "toolchain", Reason: "no usable " + name + " on this host", Fix: install, Err: errors.Join(reasons...),
	}
}

// onPath lists the programs with that name in the absolute directories of the caller's PATH and then of the default
// one.
func onPath(name string) []string {
	var list []string
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), filepath.SplitList(executor.DefaultPath)...) {
		program := filepath.Join(dir, name)
		if filepath.IsAbs(dir) && executable(program) == nil && !slices.Contains(list, program) {
			list = append(list, program)
		}
	}
	return list
}

func executable(program string) error {
	fi, err := os.Stat(program)
	switch {
	case err != nil:
		return err
	case !fi.Mode().IsRegular() || fi.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s must be an executable file", program)
	}
	return nil
}

// searchPath returns what must come before PATH so that the name means the one in this directory inside: nothing, if
// the default search path leads to it.
func searchPath(name, directory string) []string {
	for _, dir := range filepath.SplitList(executor.DefaultPath) {
		first := filepath.Join(dir, name)
		if executable(first) == nil {
			if dir == directory {
				return nil
			}
			break
		}
	}
	return []string{directory}
}

// mounts makes each path that exists visible, read-only, at its own place and, if links lead to it, at the place
// where it really is.
func mounts(paths ...string) []executor.Mount {
	var list []string
	for _, p := range paths {
		for _, one := range []string{filepath.Clean(p), resolve(p)} {
			if fi, err := os.Lstat(one); err == nil && !(fi.Mode()&os.ModeSymlink != 0 && within("/usr", one)) {
				list = append(list, one) // a link in /usr is there with /usr, and is no place to mount something on
			}
		}
	}
	slices.Sort(list)
	var ms []executor.Mount
	for _, p := range slices.Compact(list) {
		covered := slices.ContainsFunc(ms, func(m executor.Mount) bool { return within(m.Source, p) })
		if !covered {
			ms = append(ms, executor.Mount{Source: p, Target: p})
		}
	}
	return ms
}
