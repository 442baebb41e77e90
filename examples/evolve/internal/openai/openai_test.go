// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/openai"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
	"github.com/evoseal/containment/runaway"
)

const source = "package src\n\nfunc Score(n int) int { return n }\n"

func state() *variant.State {
	return &variant.State{
		Iteration: 3, Task: "make Score larger", Surface: []variant.File{{Path: "src/score.go", Content: source}},
		Best: &variant.Score{Value: 4.5, Unit: "% too much"}, Start: &variant.Score{Value: 5, Unit: "% too much"},
		Baseline: "--- FAIL: TestScore", History: []variant.Past{
			{Iteration: 2, Stage: "plan", Reasons: []string{"edit-denied: go.mod is protected"}, Note: "second", Output: "panic: no"},
		},
	}
}

// block is the text of one search/replace block.
func block(path, old, replacement string) string {
	return path + "\n<<<<<<< SEARCH\n" + old + "=======\n" + replacement + ">>>>>>> REPLACE\n"
}

var good = block("src/score.go", "func Score(n int) int { return n }\n", "func Score(n int) int { return n + 1 }\n")

// answer is what a server sends.
func answer(content, finish string) string {
	b, err := json.Marshal(map[string]any{
		"id": "x", "choices": []any{map[string]any{
			"index": 0, "finish_reason": finish, "message": map[string]any{"role": "assistant", "content": content},
		}},
		"usage": map[string]any{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "more": map[string]any{}},
	})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// serve starts a server that a Generator with this configuration asks.
func serve(t *testing.T, c openai.Config, h http.HandlerFunc) *openai.Generator {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // a server notices that a client has gone only when it has read what it sent
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h(w, r)
	}))
	t.Cleanup(server.Close)
	c.URL, c.Model = server.URL+"/v1", "tiny"
	g, err := openai.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func send(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

// TestGood: what is sent, and what is made of the answer.
func TestGood(t *testing.T) {
	t.Parallel()
	chatty := "<think>\n" + block("src/score.go", "x\n", "y\n") + "</think>\nSure! I will change **one** line:\n\n`src/score.go`\n```go\n" +
		strings.TrimPrefix(good, "src/score.go\n") + "```\nThat should do it.\r\n"
	for name, content := range map[string]string{"plain": good, "chatty": chatty, "carriage returns": strings.ReplaceAll(good, "\n", "\r\n")} {
		var got map[string]any
		g := serve(t, openai.Config{Key: "secret"}, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("%s %s, %v", r.Method, r.URL, r.Header)
			}
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
				t.Error(err)
			}
			io.WriteString(w, answer(content, "stop"))
		})
		p, err := g.Next(t.Context(), state())
		want := variant.Proposal{
			Edits: []allowlist.Edit{{
				Op: allowlist.Modify, Path: "src/score.go", Base: allowlist.Sum([]byte(source)),
				Content: []byte("package src\n\nfunc Score(n int) int { return n + 1 }\n"),
			}},
			Usage: runaway.Usage{Tokens: 120, Calls: 1}, Note: `tiny: modify "src/score.go"`,
		}
		if diff := cmp.Diff(want, p); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if got["model"] != "tiny" || got["stream"] != false || got["max_tokens"] != 8192.0 {
			t.Errorf("%s: the request is %v", name, got)
		}
		text := fmt.Sprint(got["messages"])
		for _, part := range []string{"make Score larger", "4.5 % too much", source, "--- FAIL: TestScore", "go.mod is protected", "panic: no"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the prompt lacks %q:\n%s", name, part, text)
			}
		}
	}
}

// TestBad: every other answer is an error that says what it is, and what was spent is counted.
func TestBad(t *testing.T) {
	t.Parallel()
	slow := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	stalls := func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"choices":`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		io.WriteString(w, answer(good, "stop"))
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		for chunk := []byte(strings.Repeat(" ", 64<<10)); r.Context().Err() == nil; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	status := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); io.WriteString(w, text) }
	}
	refusal := `{"choices":[{"message":{"content":null,"refusal":"I cannot help with that."},"finish_reason":"stop"}]}`
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    error
	}{
		"garbage":          {send("<html>It works!</html>"), openai.ErrAnswer},
		"nothing":          {send(""), openai.ErrAnswer},
		"array":            {send("[]"), openai.ErrAnswer},
		"wrong type":       {send(`{"choices":[{"message":{"content":{"a":1}}}]}`), openai.ErrAnswer},
		"stream":           {send("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n"), openai.ErrAnswer},
		"no choice":        {send(`{"choices":[]}`), openai.ErrAnswer},
		"null":             {send(`{"choices":[{"message":{"content":null}}]}`), openai.ErrAnswer},
		"empty":            {send(answer(" \n", "stop")), openai.ErrAnswer},
		"refusal":          {send(refusal), openai.ErrRefused},
		"filter":           {send(answer(good, "content_filter")), openai.ErrRefused},
		"refusal in words": {send(answer("I cannot help with that.", "stop")), allowlist.ErrPatchMalformed},
		"length":           {send(answer(good, "length")), openai.ErrTruncated},
		"cut off":          {cut, openai.ErrTruncated},
		"half a block":     {send(answer(good[:len(good)-5], "stop")), allowlist.ErrPatchMalformed},
		"stale":            {send(answer(block("src/score.go", "nothing like it\n", "x\n"), "stop")), allowlist.ErrConflict},
		"not shown":        {send(answer(block("policy.yaml", "gate: []\n", "x\n"), "stop")), allowlist.ErrConflict},
		"outside":          {send(answer(block("../../etc/passwd", "", "x\n"), "stop")), allowlist.ErrPathEscapes},
		"slow":             {slow, openai.ErrTimeout},
		"stalls":           {stalls, openai.ErrTimeout},
		"endless":          {endless, openai.ErrTooLarge},
		"wrong key":        {status(401, `{"error":{"message":"no"}}`), openai.ErrStatus},
		"broken":           {status(500, "\x1b[2Joops"), openai.ErrStatus},
		"no content":       {status(204, ""), openai.ErrStatus},
		"elsewhere":        {http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect).ServeHTTP, openai.ErrStatus},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := serve(t, openai.Config{Timeout: 500 * time.Millisecond, MaxAnswer: 1 << 20}, tc.handler)
			p, err := g.Next(t.Context(), state())
			if !errors.Is(err, tc.want) || len(p.Edits) > 0 {
				t.Errorf("%d edits, error %v; want %v", len(p.Edits), err, tc.want)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v looks like the end of the caller's time", err)
			}
			if charged := p.Usage.Tokens > 0; p.Usage.Calls != 1 || charged == errors.Is(err, openai.ErrStatus) {
				t.Errorf("spent %+v on %v", p.Usage, err)
			}
			if strings.Contains(err.Error(), "\x1b") {
				t.Errorf("the server's text comes out as it is: %q", err)
			}
		})
	}
}

// TestAttack: a model that reaches for the guard gets edits, and a policy that refuses them.
func TestAttack(t *testing.T) {
	t.Parallel()
	attack := good + block(".github/workflows/ci.yml", "", "on: push\n") + block("src/score_test.go", "", "package src\n")
	g := serve(t, openai.Config{}, send(answer(attack, "stop")))
	p, err := g.Next(t.Context(), state())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "src/score.go")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(source), 0o644)); err != nil {
		t.Fatal(err)
	}
	tree, err := allowlist.OpenTree(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	policy, err := allowlist.New(allowlist.Config{
		Surface: []allowlist.SurfaceRule{{Paths: []string{"src/**"}, Ops: []allowlist.Op{allowlist.Modify, allowlist.Create}}},
		Gate:    []string{"*_test.go"},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = policy.Plan(tree, p.Edits)
	denied, ok := errors.AsType[*allowlist.DeniedError](err)
	if !ok || len(denied.Decisions) != 2 || !errors.Is(err, allowlist.ErrProtected) {
		t.Errorf("the plan of %d edits gives %v", len(p.Edits), err)
	}
}

// TestBusy: a server that is busy is asked again, when it says and as often as is allowed.
func TestBusy(t *testing.T) {
	t.Parallel()
	busy := func(times int, code int, after string) http.HandlerFunc {
		asked := 0
		return func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked > times {
				send(answer(good, "stop"))(w, r)
				return
			}
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(code)
		}
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		config  openai.Config
		calls   int64
		atLeast time.Duration
		want    error
	}{
		"once":            {busy(1, 429, "1"), openai.Config{}, 2, time.Second, nil},
		"says nothing":    {busy(3, 503, ""), openai.Config{MaxWait: time.Millisecond}, 4, 0, nil},
		"too often":       {busy(4, 502, ""), openai.Config{MaxWait: time.Millisecond}, 4, 0, openai.ErrBusy},
		"too long":        {busy(1, 429, "3600"), openai.Config{}, 1, 0, openai.ErrBusy},
		"a date too late": {busy(1, 429, "Fri, 31 Dec 2100 23:59:59 GMT"), openai.Config{}, 1, 0, openai.ErrBusy},
		"nonsense":        {busy(1, 429, "-5 soon"), openai.Config{MaxWait: time.Millisecond}, 2, 0, nil},
		"never again":     {busy(1, 429, "1"), openai.Config{Retries: -1}, 1, 0, openai.ErrBusy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			p, err := serve(t, tc.config, tc.handler).Next(t.Context(), state())
			if !errors.Is(err, tc.want) || p.Usage.Calls != tc.calls || (len(p.Edits) == 1) != (err == nil) {
				t.Errorf("%d edits, spent %+v, error %v", len(p.Edits), p.Usage, err)
			}
			if time.Since(begin) < tc.atLeast {
				t.Errorf("asked again after %v", time.Since(begin))
			}
		})
	}
}

// TestCancelled: the end of the caller's context ends a request and a wait, and is what comes back.
func TestCancelled(t *testing.T) {
	t.Parallel()
	cause := errors.New("the run is over")
	for name, h := range map[string]http.HandlerFunc{
		"request": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"wait":    func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "50"); w.WriteHeader(429) },
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
		if _, err := serve(t, openai.Config{}, h).Next(ctx, state()); !errors.Is(err, cause) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []openai.Config{
		{}, {URL: "http://127.0.0.1:1/v1"}, {Model: "m"}, {URL: "127.0.0.1:11434", Model: "m"}, {URL: "file:///etc", Model: "m"},
		{URL: "https://user:pw@example.com/v1", Model: "m"}, {URL: "https://example.com/v1?key=1", Model: "m"},
		{URL: "http://example.com/v1", Model: "m", Key: "k"}, {URL: "http://localhost/v1", Model: "m", Key: "k"},
		{URL: "https://example.com/v1", Model: "m", Key: "k\r\nX: y"},
	} {
		if _, err := openai.New(c); !errors.Is(err, openai.ErrConfig) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	big := state()
	big.Surface[0].Content = strings.Repeat("x", 300<<10)
	asked := false
	g := serve(t, openai.Config{}, func(http.ResponseWriter, *http.Request) { asked = true })
	if p, err := g.Next(t.Context(), big); !errors.Is(err, openai.ErrTooLarge) || asked || p.Usage != (runaway.Usage{}) {
		t.Errorf("a prompt that is too large: %v, spent %+v", err, p.Usage)
	}
}

// TestPlain: what go test prints as JSON is shown as text, and other output as it is.
func TestPlain(t *testing.T) {
	t.Parallel()
	s := state()
	s.Baseline = `{"Action":"run","Package":"src","Test":"TestScore"}
{"Action":"output","Package":"src","Test":"TestScore","Output":"=== RUN   TestScore\n"}
{"Action":"output","Package":"src","Test":"TestScore","Output":"    score_test.go:7: got \"1\"\n"}
{"Action":"output","Package":"src","Test":"TestScore","Output":"--- FAIL: TestScore (0.00s)\n"}
{"Action":"fail","Package":"src","Test":"TestScore","Elapsed":0}
{"a": 1}
{"cut`
	var got struct{ Messages []struct{ Content string } }
	g := serve(t, openai.Config{}, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		io.WriteString(w, answer(good, "stop"))
	})
	if _, err := g.Next(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(got.Messages[1].Content, "They print:\n\n")
	shown, _, _ := strings.Cut(after, "\n\nVariant")
	want := "```\n    score_test.go:7: got \"1\"\n--- FAIL: TestScore (0.00s)\n{\"a\": 1}\n{\"cut\n```"
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}
}
