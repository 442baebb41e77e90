// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/examples/evolve/internal/variant"
	"github.com/evoseal/containment/internal/testenv"
)

// What the generators of this file propose for the bug of TestTree, one after the other. Each looks at the history for
// its turn, so an answer that a busy machine made late is given again.
const (
	garbage = "Certainly! Here is the fix you asked for."
	worse   = "if a <= b {"
	better  = "if a > b {"
	cheat   = "if false {"
)

// turn is the number of variants that were answered.
func turn(reasons [][]string) (n int, late bool) {
	for _, all := range reasons {
		text := strings.Join(all, " ")
		if strings.Contains(text, "no answer in time") || strings.Contains(text, "took too long") {
			late = true
		} else {
			n++
		}
	}
	return n, late
}

// block is a search/replace block of whole lines. Without lines to search for it makes a file.
func block(path, old, replacement string) string {
	return path + "\n<<<<<<< SEARCH\n" + old + "=======\n" + replacement + ">>>>>>> REPLACE\n"
}

// endings say how the variants of both end, in this order but for the one that is late.
var endings = []string{
	`propose .*(no JSON|no usable answer|do not fit)`,
	`propose .*(refuses|failed)`,
	`judge .*rejected`,
	`propose .*max_test\.go.*conflict`,
	`plan .*edit-denied.*zz_test\.go`,
	`settle kept`,
}

// strangerArg makes this test binary the stranger: nothing of the environment reaches it.
const strangerArg = "evolve-test-stranger"

func init() {
	if len(os.Args) == 2 && os.Args[1] == strangerArg {
		stranger()
		os.Exit(0)
	}
}

// stranger is the program behind -generator command: this test binary. The state is on its standard input.
func stranger() {
	var s variant.State
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var reasons [][]string
	for _, p := range s.History {
		reasons = append(reasons, p.Reasons)
	}
	modify := func(line string) {
		content := strings.Replace(s.Surface[0].Content, "if a < b {", line, 1)
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
			"note": line, "edits": []any{map[string]string{"op": "modify", "path": "max.go", "content": content}},
		})
	}
	switch n, late := turn(reasons); {
	case n == 2 && !late:
		time.Sleep(time.Hour)
	case n == 0:
		fmt.Println(garbage)
	case n == 1:
		fmt.Fprintln(os.Stderr, "I would rather not.")
		os.Exit(1)
	case n == 2:
		modify(worse)
	case n == 3:
		fmt.Print(block("max_test.go", "	if Max(1, 2) != 2 || Max(2, 1) != 2 {\n", "	"+cheat+"\n"))
	case n == 4:
		fmt.Println(`{"edits": [{"op": "create", "path": "zz_test.go", "content": "package max\n"}]}`)
	default:
		modify(better)
	}
}

// model is a server that answers as one of a model would.
type model struct {
	t      *testing.T
	busy   atomic.Int64 // when it has said so, in nanoseconds
	calls  atomic.Int64
	shown  atomic.Pointer[string] // the last prompt
	waited atomic.Bool
}

var (
	pastVariant = regexp.MustCompile(`(?m)^Variant \d+ was not accepted(.*(?:\n  .*)*)`)
	refusal     = `{"choices": [{"message": {"role": "assistant", "content": null, "refusal": "I cannot help with that."}}]}`
)

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.calls.Add(1)
	body, err := io.ReadAll(r.Body)
	var asked struct{ Messages []struct{ Content string } }
	if err := errors.Join(err, json.Unmarshal(body, &asked)); err != nil || len(asked.Messages) != 2 {
		m.t.Errorf("%v: %s", err, body)
		return
	}
	prompt := asked.Messages[1].Content
	m.shown.Store(&prompt)
	var reasons [][]string
	for _, past := range pastVariant.FindAllString(prompt, -1) {
		reasons = append(reasons, []string{past})
	}
	say := func(content string) {
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{
			"finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": content},
		}}})
	}
	change := func(line string) {
		say("I think this will do:\n\n```go\n" + block("max.go", "	if a < b {\n", "	"+line+"\n") + "```\n")
	}
	switch n, late := turn(reasons); {
	case n == 2 && !late:
		<-r.Context().Done()
	case n == 0:
		fmt.Fprint(w, "<html>"+garbage)
	case n == 1:
		fmt.Fprint(w, refusal)
	case n == 2 && m.busy.CompareAndSwap(0, time.Now().UnixNano()):
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case n == 2:
		m.waited.Store(time.Since(time.Unix(0, m.busy.Load())) >= time.Second)
		change(worse)
	case n == 3:
		say(block("max_test.go", "	if Max(1, 2) != 2 || Max(2, 1) != 2 {\n", "	"+cheat+"\n"))
	case n == 4:
		say(block("zz_test.go", "", "package max\n"))
	default:
		change(better)
	}
}

// withContainers builds the program as it must be to prove a container: with the client of containerd, and static.
func withContainers(t *testing.T) string {
	t.Helper()
	for _, c := range []string{"root", "containerd", "runc", "go", "go-caches"} {
		testenv.Need(t, c)
	}
	path := filepath.Join(t.TempDir(), "evolve")
	build := exec.Command("go", "build", "-buildvcs=false", "-tags", "containerd", "-ldflags=-s -w", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// Models and programs of others write the variants, each in a container of its own: what is useless is counted and
// survived, what attacks the tests is refused, and what mends the program is kept.
func TestStrangers(t *testing.T) {
	program, dir := withContainers(t), scratch(t)
	project := filepath.Join(dir, "project")
	buggyProject(t, project)
	home := filepath.Join(dir, "home") // without credentials, which would be another reason for tier 2
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	start := func(args ...string) *exec.Cmd {
		c := exec.Command(program, append([]string{"-allow-old-runtime", "-executor", "containerd"}, args...)...)
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + dir, "GOCACHE=" + strings.TrimSpace(string(cache))}
		return c
	}
	common := []string{"-tree", project, "-surface", "*.go", "-max", "15", "-patience", "3s"}

	t.Run("openai", func(t *testing.T) {
		m := &model{t: t}
		server := httptest.NewServer(m)
		defer server.Close()
		mended(t, approved(t, start,
			append(common, "-generator", "openai", "-url", server.URL+"/v1", "-model", "tiny")...))
		if !m.waited.Load() {
			t.Error("a busy server was not given the time that it asked for")
		}
		for _, want := range []string{
			"edit-denied", "cannot help", "no JSON", "no answer in time", "\n    --- FAIL: TestMax", "the surface, which is ",
		} {
			if last := *m.shown.Load(); !strings.Contains(last, want) {
				t.Errorf("the model was not told %q:\n%s", want, last)
			}
		}
	})
	t.Run("command", func(t *testing.T) {
		mended(t, approved(t, start, append(common, "-generator", "command", "--", os.Args[0], strangerArg)...))
	})
	if now, err := os.ReadFile(filepath.Join(project, "max.go")); err != nil || string(now) != buggy {
		t.Errorf("%v: the project was changed:\n%s", err, now)
	}
}

// approved starts a run. If it asks for a person's approval, that is given as the refusal says, and the run goes on.
func approved(t *testing.T, start func(...string) *exec.Cmd, args ...string) string {
	t.Helper()
	for range 3 { // what is seen on a host may change, and each approval is for one
		out, err := start(args...).CombinedOutput()
		form := regexp.MustCompile(`(?s)\n(\{\n.*?\n\})\n`).FindSubmatch(out)
		if err == nil {
			return string(out)
		}
		if form == nil {
			t.Fatalf("%v\n%s", err, out)
		}
		l := stateOf(t, string(out))
		if _, err := os.Lstat(l.history()); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("variants were made without approval\n%s", out)
		}
		signed := strings.Replace(string(form[1]), `"approver": ""`, `"approver": "A. Tester"`, 1)
		signed = strings.Replace(signed, `"reason": ""`, `"reason": "the proposals are those of this very test"`, 1)
		// The temporary directory is everybody's.
		desk, err := os.MkdirTemp("/run", "evolve-test-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(desk)
		path := filepath.Join(desk, "approval.json")
		if err := os.WriteFile(path, []byte(signed), 0o600); err != nil {
			t.Fatal(err)
		}
		args = []string{"-resume", "-state", l.dir, "-approval", path}
	}
	t.Fatal("approved three times, and still refused")
	return ""
}

// mended demands that a run ended with the fix and nothing else, and tells what became of each variant.
func mended(t *testing.T, out string) {
	t.Helper()
	l := stateOf(t, out)
	h, err := openHistory(l.history())
	if err != nil {
		t.Fatal(err)
	}
	h.close()
	var ends []string
	var late bool
	for _, e := range h.all {
		n, isLate := turn([][]string{e.Reasons})
		late = late || isLate
		if n == 1 {
			ends = append(ends, e.Stage+" "+strings.Join(e.Reasons, " "))
		}
	}
	if len(ends) != len(endings) || !late {
		t.Fatalf("%d variants and late: %v\n%q\n%s", len(ends), late, ends, out)
	}
	for i, want := range endings {
		if !regexp.MustCompile("(?s)^" + want).MatchString(ends[i]) {
			t.Errorf("variant %d ended as %q, want %s", i+1, ends[i], want)
		}
	}
	summary := fmt.Sprintf("%d variants, of which 2 were compiled and tested in containerd, 1 kept", len(h.all))
	for _, want := range []string{summary, "tier container required", "-\tif a < b {\n+\tif a > b {\n", "best.patch"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	want := map[string]string{
		"go.mod": buggyModule, "max.go": strings.Replace(buggy, "if a < b", "if a > b", 1), "max_test.go": buggyTest,
	}
	got := map[string]string{}
	entries, err := os.ReadDir(l.tree())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(l.tree(), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
}
