// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
)

// leaks are what plain execution lets a program do, with what the probe says then. Each is tried twice, by the same
// program: outside it must get through, or the probe proves nothing; inside it must not.
var leaks = []struct {
	name string
	root bool // only root's programs can do this outside
}{
	{name: "secret variable"}, {name: "descriptor 7"}, {name: "no capability", root: true}, {name: "no_new_privs"},
	{name: "seccomp"}, {name: "processes"}, {name: "io_uring_setup"}, {name: "keyctl"}, {name: "AF_VSOCK"},
	{name: "nested user namespace"}, {name: "ptrace"}, {name: "bpf", root: true}, {name: "loopback"}, {name: "abstract socket"},
	{name: "runtime socket"}, {name: "/etc/shadow", root: true}, {name: "0600 file"}, {name: "write /", root: true},
	{name: "write /etc", root: true}, {name: "core_pattern", root: true}, {name: "size of /dev/shm"}, {name: "size of /tmp"},
	{name: "RLIMIT_NOFILE"}, {name: "hostname"}, {name: "HOME"}, {name: "terminal ioctl"}, {name: "System V memory"},
	{name: "parent's environment"}, {name: "parent's descriptors"},
}

// question is what the probe is told, on standard input.
type question struct {
	Secret, TCP, Abstract, Socket, File, Hostname, Home string
	Segment                                             int
	Disk                                                int64
	Files                                               uint64
}

const probeMarker = "containment-leak-probe"

func TestLeakTable(t *testing.T) {
	dir := openDir(t)
	q := question{Secret: "canary-" + filepath.Base(dir), File: filepath.Join(dir, "private"), Disk: 4 << 20, Files: 77}
	write(t, dir, map[string]string{"private": q.Secret})
	if err := os.Chmod(q.File, 0o600); err != nil {
		t.Fatal(err)
	}
	q.Hostname, _ = os.Hostname()
	q.Home, _ = os.UserHomeDir()
	listen(t, "tcp", "127.0.0.1:0", &q.TCP)
	listen(t, "unix", "@"+q.Secret, &q.Abstract)
	listen(t, "unix", filepath.Join(dir, "socket"), &q.Socket)
	q.Segment = segment(t)
	outside := outsideAnswers(t, q)
	inside := insideAnswers(t, q)
	for _, l := range leaks {
		out, in := outside[l.name], inside[l.name]
		if out != "LEAK" && (!l.root || os.Getuid() == 0) {
			t.Errorf("%s: outside the probe says %q, so it proves nothing", l.name, out)
		}
		if in == "LEAK" || in == "" {
			t.Errorf("%s: inside the probe says %q", l.name, in)
		}
		t.Logf("%-24s outside %-12s inside %s", l.name, out, in)
	}
	for _, name := range []string{"AF_UNIX", "AF_NETLINK"} {
		if inside[name] != "ok" {
			t.Errorf("%s: %q, but programs need it", name, inside[name])
		}
	}
}

// listen accepts whoever comes.
func listen(t *testing.T, network, address string, at *string) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	*at = l.Addr().String()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
}

// outsideAnswers runs the probe as programs run programs.
func outsideAnswers(t *testing.T, q question) map[string]string {
	t.Helper()
	t.Setenv("CONTAINMENT_TEST_SECRET", q.Secret)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", probeMarker)
	cmd.Stdin = bytes.NewReader(marshal(t, q))
	f, err := os.Open(q.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.ExtraFiles = []*os.File{f, f, f, f, f} // 3 to 7
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return unmarshal(t, out)
}

// insideAnswers runs the same program in the sandbox, with the same things left open.
func insideAnswers(t *testing.T, q question) map[string]string {
	t.Helper()
	ex := newExecutor(t, bubblewrap.Config{})
	f, err := os.Open(q.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	leave(t, f, 7)
	ws := t.TempDir()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, "probe"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	r := mustRun(t, ex, executor.Spec{
		Args: []string{"./probe", probeMarker}, Workspace: ws, Stdin: bytes.NewReader(marshal(t, q)),
		Limits: executor.Limits{Disk: q.Disk, OpenFiles: int(q.Files)},
	})
	if !r.OK() {
		t.Fatalf("the probe ended by %v: %s", r.Cause, r.Stderr)
	}
	return unmarshal(t, r.Stdout.Bytes())
}

func marshal(t *testing.T, q question) []byte {
	t.Helper()
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func unmarshal(t *testing.T, text []byte) (answers map[string]string) {
	t.Helper()
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatalf("%v: %.300q", err, text)
	}
	return answers
}

// probe is the program: it tries everything and says what came of it.
func probe() {
	var q question
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = json.Unmarshal(text, &q)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	answers := map[string]string{}
	for _, part := range []func(question) map[string]string{probeInherited, probeCalls, probeReach, probeFiles} {
		for name, answer := range part(q) {
			answers[name] = answer
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(answers)
	os.Exit(0)
}

// leak is the answer of a probe that got through.
func leak(through bool) string {
	if through {
		return "LEAK"
	}
	return "no"
}

// containsSecret reads a file that may be an environment.
func containsSecret(path, secret string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(text), secret)
}
