// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/binpack"
	"github.com/evoseal/containment/examples/evolve/internal/genetic"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

// packed is what an honest run leaves behind.
func packed(t *testing.T, all []binpack.Instance, rule binpack.Rule) string {
	t.Helper()
	var data []byte
	for i := range all {
		for _, bin := range rule(&all[i]) {
			data = binary.LittleEndian.AppendUint32(data, uint32(bin))
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, packings), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A variant is kept for fewer bins and nothing else, and its score is on the disk before it is.
func TestJudge(t *testing.T) {
	t.Parallel()
	all := binpack.Uniform.Generate(1, 2, 500)
	first, best := binpack.Excess(all, binpack.FirstFit), binpack.Excess(all, binpack.BestFit)
	linked := t.TempDir()
	if err := os.Symlink(filepath.Join(packed(t, all, binpack.BestFit), packings), filepath.Join(linked, packings)); err != nil {
		t.Fatal(err)
	}
	good := &executor.Result{Cause: executor.CauseExited}
	honest := isolation.Evaluation{Result: good, Artifacts: packed(t, all, binpack.BestFit)}
	after := func(r *executor.Result) isolation.Evaluation {
		return isolation.Evaluation{Result: r, Artifacts: honest.Artifacts}
	}
	left := func(dir string) isolation.Evaluation { return isolation.Evaluation{Result: good, Artifacts: dir} }
	rejected, noResult := isolation.ErrRejected, isolation.ErrNoResult
	for _, c := range []struct {
		name string
		bar  float64
		e    isolation.Evaluation
		want isolation.Ruling
		err  error
	}{
		{"better", first, honest, isolation.Keep, nil},
		{"equal", best, honest, isolation.Reject, rejected},
		{"worse", best, left(packed(t, all, binpack.FirstFit)), isolation.Reject, rejected},
		{"a bar that is no number", math.NaN(), honest, isolation.Reject, rejected},
		{"no result", first, after(nil), isolation.Reject, rejected},
		{"failed", first, after(&executor.Result{Cause: executor.CauseExited, ExitCode: 1}), isolation.Reject, rejected},
		{"killed", first, after(&executor.Result{Cause: executor.CauseWallTimeout}), isolation.Reject, rejected},
		{"nothing left behind", first, left(t.TempDir()), isolation.Reject, noResult},
		{"no directory", first, left(""), isolation.Reject, noResult},
		{"of other instances", first, left(packed(t, all[:1], binpack.BestFit)), isolation.Reject, noResult},
		{"a link out", first, left(linked), isolation.Reject, noResult},
	} {
		p := &packing{tested: all, best: c.bar, ledger: filepath.Join(t.TempDir(), "scores.json")}
		p.proposed([]allowlist.Edit{{Path: "other"}, {Path: evolved, Content: []byte("content")}})
		got, err := p.judge().Judge(context.Background(), c.e)
		if got != c.want || !errors.Is(err, c.err) || c.err == nil && err != nil {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
		scores, err := p.readLedger()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{}
		if c.want == isolation.Keep {
			want[allowlist.Sum([]byte("content")).String()] = best
		}
		if diff := cmp.Diff(want, scores); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if p.best != c.bar && !math.IsNaN(c.bar) {
			t.Errorf("%s: the bar moved before the boundary has kept it", c.name)
		}
	}
}

// The tree that a run begins with is a module that the policy lets nobody change but for one body.
func TestSurface(t *testing.T) {
	t.Parallel()
	p, err := newPacking(&options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := p.prepare(dir); err != nil {
		t.Fatal(err)
	}
	policy, err := allowlist.New(p.surface())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := allowlist.OpenTree(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	source, err := tree.ReadFile(evolved)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(old, with string) []byte {
		if !strings.Contains(string(source), old) {
			t.Fatalf("%q is not in the source", old)
		}
		return []byte(strings.Replace(string(source), old, with, 1))
	}
	for _, c := range []struct {
		path    string
		content []byte
		allowed bool
	}{
		{evolved, replace("return -gap", "return 2 * gap"), true},
		{evolved, replace(`import "math"`, "import \"math\"\nimport \"os\""), false},
		{evolved, replace("return 1\n", "return 2\n"), false}, // in div
		{evolved, replace("return -gap", "//go:linkname x y\n\treturn gap"), false},
		{evolved, append(replace("return -gap", "return gap"), "\nfunc init() {}\n"...), false},
		{"pack_test.go", []byte("package program\n"), false},
		{instances, []byte("0\n"), false},
		{"go.mod", []byte("module x\n"), false},
	} {
		before, err := tree.ReadFile(c.path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = policy.Plan(tree, []allowlist.Edit{
			{Op: allowlist.Modify, Path: c.path, Content: c.content, Base: allowlist.Sum(before)},
		})
		if (err == nil) != c.allowed {
			t.Errorf("%s: %v\n%s", c.path, err, c.content)
		}
	}
	more := allowlist.Edit{Op: allowlist.Create, Path: "priority/more.go", Content: []byte("package priority\n")}
	if _, err := policy.Plan(tree, []allowlist.Edit{more}); err == nil {
		t.Error("a file may be added")
	}
}

// The bred body is what the policy takes, and what comes back from the tree.
func TestBreeder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "search.json")
	o := &options{Problem: "uniform", Seed: 3, Screen: 20}
	b, err := newBreeder(path, o)
	if err != nil {
		t.Fatal(err)
	}
	source, err := program.ReadFile("program/" + evolved)
	if err != nil {
		t.Fatal(err)
	}
	state := &variant.State{Iteration: 1, Surface: []variant.File{{Path: evolved, Content: string(source)}}}
	next := func(b *breeder) (string, string) {
		t.Helper()
		proposal, err := b.Next(context.Background(), state)
		if err != nil || len(proposal.Edits) != 1 || proposal.Edits[0].Path != evolved {
			t.Fatal(proposal, err)
		}
		e, err := genetic.ParseFunc(proposal.Edits[0].Content, function)
		if err != nil || e.String() != proposal.Note {
			t.Errorf("%q, %v in\n%s", proposal.Note, err, proposal.Edits[0].Content)
		}
		return proposal.Note, string(proposal.Edits[0].Content)
	}
	note, content := next(b)
	// It was kept, and the program was killed before the history knew. Another one goes on from the tree and the file.
	state.Surface[0].Content = content
	again, err := newBreeder(path, o)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := next(again); second == note {
		t.Error("the same variant twice")
	}
	if want, _ := next(b); want == note {
		t.Error("the same variant twice")
	}
	o.Seed++
	if _, err := newBreeder(path, o); !errors.Is(err, genetic.ErrState) {
		t.Error("the state of another run:", err)
	}
	state.Surface[0].Content = strings.Replace(content, "return", "for {}\n\treturn", 1)
	if _, err := b.Next(context.Background(), state); !errors.Is(err, genetic.ErrGrammar) {
		t.Error(err)
	}
}

// A history ends where a crash has cut it off, and is refused where somebody has written nonsense into it.
func TestHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.jsonl")
	h, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if err := h.add(entry{Past: variant.Past{Iteration: i + 1, Accepted: i%10 == 0}, Screened: 10 * i}); err != nil {
			t.Fatal(err)
		}
	}
	h.close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, `{"iteration":31,"acc`...), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h.all, again.all); diff != "" {
		t.Error(diff)
	}
	last := again.last(20)
	if len(last) != 20 || last[19].Iteration != 30 || again.accepted() != 3 || again.screened() != 290 {
		t.Error(len(last), again.accepted(), again.screened())
	}
	if err := again.add(entry{Past: variant.Past{Iteration: 31}}); err != nil {
		t.Fatal(err)
	}
	again.close()
	if h, err = openHistory(path); err != nil || len(h.all) != 31 {
		t.Fatal(err)
	}
	h.close()
	if err := os.WriteFile(path, append([]byte("nonsense\n"), whole...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openHistory(path); err == nil {
		t.Error("nonsense was read")
	}
}

// A directory that somebody else could write to is not used.
func TestLayout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o755), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{open, link, file} {
		if _, err := place(&options{State: bad}); err == nil {
			t.Errorf("%s is used", bad)
		}
	}
	l, err := place(&options{State: filepath.Join(dir, "new", "run")})
	if err != nil {
		t.Fatal(err)
	}
	if err := saveJSON(l.run(), &options{Max: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := place(&options{State: l.dir}); err == nil || !strings.Contains(err.Error(), "-resume") {
		t.Error(err)
	}
	if _, err := place(&options{State: l.dir, Resume: true}); err != nil {
		t.Error(err)
	}
	if got, err := newest(filepath.Dir(l.dir)); got != l.dir || err != nil {
		t.Error(got, err)
	}
}

// What belongs to a run comes from its state, and what holds for one start from the command line.
func TestLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json")
	was := &options{Problem: "weibull", Seed: 9, Screen: 7, Max: 50, Generator: "genetic", Executor: "rlimit"}
	if err := saveJSON(path, was); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]options{
		"-resume":                                {Max: 50, Executor: "rlimit"},
		"-resume -max 40":                        {Max: 50, Executor: "rlimit"}, // it can only be raised
		"-resume -max 60":                        {Max: 60, Executor: "rlimit"},
		"-resume -executor auto -instances file": {Max: 50, Executor: "auto"},
	} {
		o, err := parse(strings.Fields(args), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.load(path); err != nil {
			t.Fatal(err)
		}
		if o.Problem != "weibull" || o.Seed != 9 || o.Screen != 7 || !o.Resume {
			t.Errorf("%s: %+v", args, o)
		}
		if o.Max != want.Max || o.Executor != want.Executor {
			t.Errorf("%s: %+v", args, o)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		content string
		mode    os.FileMode
		want    string
	}{
		{"sk-1\n", 0o600, "sk-1"}, {"sk-1", 0o644, ""}, {"", 0o600, ""}, {"two words", 0o600, ""},
		{"two\nlines\n", 0o600, ""},
	} {
		path := filepath.Join(dir, "key")
		if err := errors.Join(os.WriteFile(path, []byte(c.content), 0o600), os.Chmod(path, c.mode)); err != nil {
			t.Fatal(err)
		}
		if got, err := readKey(path); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q %v: %q, %v", c.content, c.mode, got, err)
		}
	}
	if key, err := readKey(""); key != "" || err != nil {
		t.Error(key, err)
	}
	if _, err := readKey(filepath.Join(dir, "none")); err == nil {
		t.Error("there is no file")
	}
}

// The default run is trusted for what it is, and the others are looked at as a whole.
func TestTrust(t *testing.T) {
	t.Parallel()
	spec := executor.Spec{Env: map[string]string{"GOFLAGS": ""}}
	m, s := trust(&options{Generator: "genetic"}, spec)
	if d := isolation.Decide(m); d.Required != isolation.TierGuarded || d.Approval {
		t.Errorf("the default run requires %v", d.Required)
	}
	if len(s.EnvNames) == 0 || len(s.Files) != 0 {
		t.Error(s)
	}
	for name, o := range map[string]*options{
		"local": {Generator: "openai", URL: "http://127.0.0.1:11434/v1", Model: "m"},
		"next":  {Generator: "openai", URL: "http://10.1.2.3/v1", Model: "m"},
	} {
		m, s := trust(o, spec)
		m = m.Merge(isolation.Observe(context.Background(), s))
		if d := isolation.Decide(m); d.Required != isolation.TierContainer || m.Generator != isolation.Local {
			t.Errorf("%s: tier %v, generator %v", name, d.Required, m.Generator)
		}
	}
	m, s = trust(&options{Generator: "command", Command: []string{"prog"}}, spec)
	if d := isolation.Decide(m); d.Required != isolation.TierContainer || len(s.Files) == 0 {
		t.Errorf("command: %v %v", d.Required, s)
	}
}

// A line on the terminal says what tells one variant from the next.
func TestBecause(t *testing.T) {
	t.Parallel()
	const head = `rejected: "isolation: variant rejected: `
	for reason, want := range map[string]string{
		head + `2 finding(s)\n  run: it ended with exited, exit code 1\n  failed: \"m\": the package failed\n  failed: \"m TestA/b\": it failed"`: "TestA/b failed",
		head + `1 finding(s)\n  no-report: nothing was printed"`:                                                                                  "no-report: nothing was printed",
		head + `3.5 % is not below 3.4 %"`:             "rejected: 3.5 % is not below 3.4 %",
		`generate-failed: "openai: the model refuses"`: "generate-failed: openai: the model refuses",
		`restored`: "restored",
	} {
		if got := because(reason); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}
