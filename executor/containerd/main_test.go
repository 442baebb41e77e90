// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoseal/containment/executor/containerd"
	"github.com/evoseal/containment/internal/testenv"
)

// daemonPath is where another daemon, shim or runtime is taken from.
var daemonPath = flag.String("daemon.path", "", "where containerd, its shims and runc are; default: executor.DefaultPath")

// daemonMarker names the daemon of the test that started this process again.
const daemonMarker = "CONTAINMENT_TEST_DAEMON"

// daemon returns the socket of a private daemon that ends with the test. A test that executes itself once more shares
// its own with that process, which will be killed.
func daemon(t testing.TB) string {
	t.Helper()
	testenv.Need(t, "root")
	testenv.Need(t, "containerd")
	testenv.Need(t, "runc")
	if socket := os.Getenv(daemonMarker); socket != "" {
		return socket
	}
	d := startDaemon(t, filepath.Join(shortDir(t), "d"))
	if err := os.Setenv(daemonMarker, d.Socket()); err != nil { // t.Setenv would forbid parallel subtests
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Unsetenv(daemonMarker) })
	return d.Socket()
}

// startDaemon starts a daemon in a directory, and closes it with the test.
func startDaemon(t testing.TB, dir string) *containerd.Daemon {
	t.Helper()
	d, err := containerd.StartDaemon(context.Background(), containerd.DaemonConfig{Dir: dir, Path: *daemonPath})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// shortDir makes a directory that everybody may search and whose name is short enough for sockets.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctr-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// namespaceOf keeps apart what tests make that run at the same time: cgroups and the runtime's notes are named by it.
func namespaceOf(socket string) string { return filepath.Base(filepath.Dir(filepath.Dir(socket))) }

// hostReads are what a dynamic program of the host needs.
var hostReads = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64"}

// open makes an executor over a daemon, by default with directories beside it, and closes it with the test.
func open(t testing.TB, socket string, c containerd.Config) *containerd.Executor {
	t.Helper()
	c.Address, c.DangerAllowOldRuntime = socket, true
	if c.Namespace == "" {
		c.Namespace = namespaceOf(socket)
	}
	if c.RuntimeDir == "" {
		c.RuntimeDir = filepath.Join(filepath.Dir(filepath.Dir(socket)), "rt")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ex, err := containerd.New(ctx, c)
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
