// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/internal/testenv"
)

// A name lookup fails at once, and loopback works.
func TestNetworkInside(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	r := mustRun(t, ex, executor.Spec{Args: []string{"getent", "hosts", "example.com"}, Workspace: t.TempDir()})
	if r.ExitCode == 0 || r.Usage.Wall > 200*time.Millisecond*slack {
		t.Errorf("getent: exit %d after %v: %s", r.ExitCode, r.Usage.Wall, r.Stdout)
	}
	says(t, ex, executor.Spec{Args: []string{"getent", "hosts", "localhost"}, Workspace: t.TempDir()}, "::1             localhost containment\n")
	testenv.Need(t, "python3")
	script := `
import socket
s = socket.create_server(("127.0.0.1", 0))
c = socket.create_connection(s.getsockname())
a, _ = s.accept()
a.send(b"loopback")
print(c.recv(8).decode(), [n for _, n in socket.if_nameindex()])`
	says(t, ex, executor.Spec{Args: []string{"/usr/bin/python3", "-c", script}, Workspace: t.TempDir()}, "loopback ['lo']\n")
}

// slack is for machines that are busy with other tests: what must be short is short by a factor of hundreds.
const slack = 10

// Language runtimes find what they need: threads, processes, temporary files, a home, shared memory, IPC.
func TestRuntimes(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	t.Run("python", func(t *testing.T) {
		testenv.Need(t, "python3")
		script := `
import os, pathlib, tempfile, threading, subprocess, multiprocessing
from multiprocessing import shared_memory
m = shared_memory.SharedMemory(create=True, size=64); m.close(); m.unlink()
with multiprocessing.get_context("fork").Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]
t = threading.Thread(target=print, args=("thread",)); t.start(); t.join()
assert tempfile.gettempdir() == "/tmp" and pathlib.Path.home() == pathlib.Path("/home/containment")
print(subprocess.check_output(["sh", "-c", "echo $PWD; whoami; hostname"], text=True), end="")`
		spec := executor.Spec{Args: []string{"/usr/bin/python3", "-c", script}, Workspace: t.TempDir()}
		says(t, ex, spec, "thread\n/workspace\ncontainment\ncontainment\n")
	})
	t.Run("node", func(t *testing.T) {
		testenv.Need(t, "node")
		node, err := exec.LookPath("node")
		if err != nil || !strings.HasPrefix(node, "/usr/") {
			t.Logf("node is at %q, outside of what every run sees", node)
			return
		}
		script := `const {Worker} = require("worker_threads"); const {execSync} = require("child_process");
new Worker("require('worker_threads').parentPort.postMessage(1)", {eval: true}).on("message", m => console.log(m, execSync("echo child").toString().trim()))`
		says(t, ex, executor.Spec{Args: []string{node, "-e", script}, Workspace: t.TempDir()}, "1 child\n")
	})
}
