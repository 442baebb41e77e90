// SPDX-License-Identifier: Apache-2.0

package seccomp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/internal/testenv"
)

const pythonProgram = `
import subprocess, threading, socket, multiprocessing.pool, asyncio, tempfile
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
t = threading.Thread(target=lambda: None); t.start(); t.join()
assert multiprocessing.pool.ThreadPool(2).map(abs, [-1, 2]) == [1, 2]
async def main(): await asyncio.sleep(0)
asyncio.run(main())
print(subprocess.run(["/bin/echo", "ran"], capture_output=True, text=True).stdout, end="")
`

const nodeProgram = `
const cp = require("child_process"), fs = require("fs"), w = require("worker_threads");
fs.promises.readFile("/proc/self/status").then(() => {
  new w.Worker("require('worker_threads').parentPort.postMessage(1)", {eval: true}).on("message", () => {
    console.log(cp.execFileSync("/bin/echo", ["ran"]).toString().trim());
  });
});
`

// TestRuntimesWork: interpreters with threads, pipes, event loops and children live under the strictest network option.
func TestRuntimesWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ component, program, flag, text string }{
		{"python3", "python3", "-c", pythonProgram},
		{"node", "node", "-e", nodeProgram},
	} {
		t.Run(c.component, func(t *testing.T) {
			t.Parallel()
			testenv.Need(t, c.component)
			path, err := exec.LookPath(c.program)
			if err != nil {
				t.Fatal(err)
			}
			cmd := start(t, "exec", path, c.flag, c.text)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1"}
			cmd.Dir = filepath.Dir(path)
			if out, err := cmd.Output(); err != nil || string(out) != "ran\n" {
				t.Errorf("output %q, %v", out, err)
			}
		})
	}
}
