// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/executor/internal/runtest"
	"github.com/evoseal/containment/internal/testenv"
)

// defaultExecutor is what a user gets who configures nothing: its state is in memory where the host has a place for that.
func defaultExecutor(b testing.TB) *bubblewrap.Executor {
	b.Helper()
	ex, err := bubblewrap.New(b.Context(), bubblewrap.Config{})
	return closeLater(b, ex, err)
}

// peer does by command line what a run does about the uid, namespaces, view and filter, and nothing else: no copy of the
// workspace, no cgroups, no captured output.
func peer(b *testing.B, workspace string) func() error {
	b.Helper()
	args := []string{"--reuid=65534", "--regid=65534", "--clear-groups", "bwrap",
		"--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--cap-drop", "ALL", "--clearenv",
		"--hostname", "containment", "--uid", "1000", "--gid", "1000", "--seccomp", "3"}
	for _, path := range bubblewrap.DefaultReads() {
		fi, err := os.Lstat(path)
		switch {
		case err != nil:
		case fi.Mode().Type() == os.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				b.Fatal(err)
			}
			args = append(args, "--symlink", target, path)
		default:
			args = append(args, "--ro-bind", path, path)
		}
	}
	args = append(args, "--ro-bind", "/etc/passwd", "/etc/passwd", "--dev", "/dev", "--proc", "/proc")
	for _, path := range []string{"/proc/cmdline", "/proc/keys"} {
		args = append(args, "--ro-bind", "/dev/null", path)
	}
	args = append(args, "--remount-ro", "/proc")
	for _, path := range []string{"/tmp", "/home/containment", "/dev/shm"} {
		args = append(args, "--size", "536870912", "--tmpfs", path)
	}
	args = append(args, "--bind", workspace, "/workspace", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/workspace", "/bin/true")
	filter := bubblewrap.FilterFile(b)
	return func() error {
		if _, err := filter.Seek(0, 0); err != nil {
			return err
		}
		cmd := exec.Command("setpriv", args...)
		cmd.Env, cmd.ExtraFiles = []string{}, []*os.File{filter}
		return cmd.Run()
	}
}

// BenchmarkTrue measures one run of /bin/true beside the peer, interleaved in the same loop, and reports the medians.
func BenchmarkTrue(b *testing.B) {
	testenv.Need(b, "root")
	testenv.Need(b, "setpriv")
	ex := defaultExecutor(b)
	workspace := openDir(b)
	spec := executor.Spec{Args: []string{"/bin/true"}, Workspace: workspace}
	runtest.BesidePeer(b, func() error { return runTrue(b, ex, spec) }, peer(b, workspace))
}

func runTrue(b *testing.B, ex executor.Executor, spec executor.Spec) error {
	r, err := ex.Run(b.Context(), spec)
	if err == nil && !r.OK() {
		err = fmt.Errorf("cause %v", r.Cause)
	}
	return err
}

// openDir is a workspace that the peer's uid can reach as well.
func openDir(b testing.TB) string {
	b.Helper()
	dir := runtest.StateDir(b)
	if err := os.Chmod(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	return dir
}

// BenchmarkThroughput keeps one or two runs under way, and the same number of the peer's.
func BenchmarkThroughput(b *testing.B) {
	testenv.Need(b, "root")
	testenv.Need(b, "setpriv")
	ex := defaultExecutor(b)
	workspace := openDir(b)
	spec := executor.Spec{Args: []string{"/bin/true"}, Workspace: workspace}
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("ours/workers=%d", workers), func(b *testing.B) {
			runtest.Throughput(b, workers, func() func() error {
				return func() error { return runTrue(b, ex, spec) }
			})
		})
		b.Run(fmt.Sprintf("peer/workers=%d", workers), func(b *testing.B) {
			runtest.Throughput(b, workers, func() func() error { return peer(b, workspace) })
		})
	}
}

func BenchmarkTreeAtTheDeadline(b *testing.B) {
	runtest.BenchmarkTreeAtTheDeadline(b, defaultExecutor(b))
}
