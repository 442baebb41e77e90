// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/command"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/runaway"
)

const source = "one\ntwo\n"

func state() *variant.State {
	return &variant.State{Iteration: 7, Task: "count", Surface: []variant.File{{Path: "a.txt", Content: source}}}
}

// shell makes a Generator of a script.
func shell(t *testing.T, c command.Config, script string) *command.Generator {
	t.Helper()
	c.Args = []string{"/bin/sh", "-c", script}
	g, err := command.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestForms: the same edit in each of the forms.
func TestForms(t *testing.T) {
	t.Parallel()
	want := allowlist.Edit{Op: allowlist.Modify, Path: "a.txt", Content: []byte("one\n2\n"), Base: allowlist.Sum([]byte(source))}
	for name, tc := range map[string]struct {
		output string
		usage  runaway.Usage
		note   string
	}{
		"json": {`{"edits": [{"op": "modify", "path": "a.txt", "content": "one\n2\n"}], "note": "two\n is \u001b[2J2",
			"usage": {"tokens": 12, "calls": 1, "cpu": 5}}`, runaway.Usage{Tokens: 12, Calls: 1, CPU: 5}, "two  is  [2J2"},
		"git":            {"diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n", runaway.Usage{}, "sh"},
		"apply":          {"*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** End Patch\n", runaway.Usage{}, "sh"},
		"search/replace": {"a.txt\n<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n", runaway.Usage{}, "sh"},
	} {
		g := shell(t, command.Config{Env: map[string]string{"ANSWER": tc.output}}, `cat >/dev/null; printf %s "$ANSWER"`)
		got, err := g.Next(t.Context(), state())
		if diff := cmp.Diff(variant.Proposal{Edits: []allowlist.Edit{want}, Usage: tc.usage, Note: tc.note}, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestInput: the program gets the state and nothing else.
func TestInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := shell(t, command.Config{Env: map[string]string{"OUT": dir}}, `cat > "$OUT/in"; env > "$OUT/env"; pwd > "$OUT/pwd"; echo '{"exhausted": true}'`)
	if _, err := g.Next(t.Context(), state()); !errors.Is(err, variant.ErrExhausted) {
		t.Errorf("%v", err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	if in := read("in"); !strings.Contains(in, `"iteration":7`) || !strings.Contains(in, `"content":"one\ntwo\n"`) {
		t.Errorf("the input is %s", in)
	}
	for line := range strings.Lines(read("env")) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "PWD", "OLDPWD", "SHLVL", "_": // the shell's own
		case "OUT":
		case "PATH":
			if value != executor.DefaultPath {
				t.Errorf("PATH is %s", value)
			}
		default:
			t.Errorf("it inherits %s", line)
		}
	}
	if got := read("pwd"); got != "/\n" {
		t.Errorf("it works in %q", got)
	}
}

// TestBad: what is no answer, and what was spent on it.
func TestBad(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script string
		want   error
		tokens int64
	}{
		"fails":            {`echo '{"exhausted": true}'; echo "no luck" >&2; exit 3`, command.ErrFailed, 0},
		"killed":           {`kill -9 $$`, command.ErrFailed, 0},
		"silent":           {`exit 0`, command.ErrAnswer, 0},
		"talks":            {`echo hello`, allowlist.ErrPatchMalformed, 0},
		"half":             {`printf '{"edits": ['`, command.ErrAnswer, 0},
		"two objects":      {`echo '{"exhausted": true} {}'`, command.ErrAnswer, 0},
		"unknown name":     {`echo '{"exhausted": true, "approve": true}'`, command.ErrAnswer, 0},
		"no edits":         {`echo '{"usage": {"tokens": 3}}'`, command.ErrAnswer, 3},
		"both":             {`echo '{"exhausted": true, "edits": [{"op": "delete", "path": "a.txt"}]}'`, command.ErrAnswer, 0},
		"op":               {`echo '{"edits": [{"op": "chmod", "path": "a.txt"}], "usage": {"tokens": 3}}'`, command.ErrAnswer, 3},
		"not on surface":   {`echo '{"edits": [{"op": "modify", "path": "/etc/passwd", "content": ""}]}'`, command.ErrAnswer, 0},
		"refund":           {`echo '{"usage": {"tokens": -3}}'`, command.ErrAnswer, 0},
		"flood":            {`while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`, command.ErrTooLarge, 0},
		"sleeps":           {`sleep 100`, command.ErrTimeout, 0},
		"deaf":             {`trap "" TERM INT HUP; while :; do :; done`, command.ErrTimeout, 0},
		"keeps the output": {`sleep 100 & exit 0`, command.ErrFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := shell(t, command.Config{Timeout: 3 * time.Second, MaxOutput: 4 << 10}, tc.script)
			p, err := g.Next(t.Context(), state())
			if !errors.Is(err, tc.want) || len(p.Edits) > 0 || p.Usage.Tokens != tc.tokens {
				t.Errorf("%d edits, spent %+v, error %v; want %v", len(p.Edits), p.Usage, err, tc.want)
			}
		})
	}
}

// TestCancelled: with the caller's context ends the program and what it has started.
func TestCancelled(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	g := shell(t, command.Config{Env: map[string]string{"FILE": file}}, `sleep 100 & echo $! > "$FILE.new"; mv "$FILE.new" "$FILE"; wait`)
	cause := errors.New("the run is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := g.Next(ctx, state())
		done <- err
	}()
	var text []byte
	for len(text) == 0 {
		if ctx.Err() != nil {
			t.Fatal("the program did not start")
		}
		text, _ = os.ReadFile(file)
		time.Sleep(5 * time.Millisecond)
	}
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// Whoever adopts it may take a moment to reap it; a process that is dead and not reaped yet is in state Z.
	for deadline := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil && !zombie(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d lives on", pid)
		}
	}
}

func zombie(pid int) bool {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return strings.Contains(string(b), ") Z ")
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []command.Config{
		{}, {Args: []string{""}}, {Args: []string{"no-such-program-anywhere"}}, {Args: []string{"/etc"}},
		{Args: []string{"/bin/sh"}, Env: map[string]string{"A=B": "x"}}, {Args: []string{"/bin/sh"}, Env: map[string]string{"A": "x\x00y"}},
	} {
		if _, err := command.New(c); !errors.Is(err, command.ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
