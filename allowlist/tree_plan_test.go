// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/allowlist"
	"github.com/google/go-cmp/cmp"
)

const strictLimits = `
version: 1
surface:
  - {paths: ["src/**"], ops: [modify, create, delete]}
protect: [configs/**]
gate: []
limits: {files: 3, created: 1, deleted: 1, changed_lines: 4, file_bytes: 64, total_bytes: 100}
`

// TestPlanReportsEverything: all denials at once, one for each edit, in the fixed order; limits of the set beside them.
func TestPlanReportsEverything(t *testing.T) {
	t.Parallel()
	files := map[string]string{"src/a": "a\nb\nc\n", "src/b": "b\n", "src/c": "c\n", "configs/s": "s\n", "src/d": "n\n"}
	zero := modify("src/b", "b\n", "x\n")
	zero.Base = allowlist.Digest{}
	stale := create("src/new", "x\n")
	stale.Base = allowlist.Sum([]byte("something"))
	for name, c := range map[string]struct {
		edits []allowlist.Edit
		want  []string
	}{
		"nothing":       {nil, []string{" patch_malformed"}},
		"mixed":         {[]allowlist.Edit{create("configs/x", "x"), create("README", "x"), modify("src/../x", "", "x")}, []string{" too_large", "README outside_surface", "configs/x protected", "src/../x path_escapes"}},
		"same path":     {[]allowlist.Edit{modify("src/a", "a\nb\nc\n", "x\n"), remove("src/a", "a\nb\nc\n")}, []string{"src/a conflict", "src/a conflict"}},
		"below a file":  {[]allowlist.Edit{remove("src/b", "b\n"), create("src/b/x", "x")}, []string{"src/b/x conflict"}},
		"case of edits": {[]allowlist.Edit{modify("src/B", "b\n", "x\n"), modify("src/b", "b\n", "x\n")}, []string{"src/B case_collision", "src/b case_collision"}},
		"case of new directories": {[]allowlist.Edit{create("src/New/x", "x\n"), modify("src/new/y", "", "x\n")},
			[]string{"src/New/x case_collision", "src/new/y case_collision"}},
		"file limit before NUL":  {[]allowlist.Edit{modify("src/b", "b\n", string(make([]byte, 65)))}, []string{"src/b too_large"}},
		"NUL before base":        {[]allowlist.Edit{modify("src/b", "other", "\x00")}, []string{"src/b file_type"}},
		"base":                   {[]allowlist.Edit{modify("src/b", "other", "x\n")}, []string{"src/b conflict"}},
		"base missing":           {[]allowlist.Edit{zero}, []string{"src/b conflict"}},
		"base of a new file":     {[]allowlist.Edit{stale}, []string{"src/new conflict"}},
		"absent":                 {[]allowlist.Edit{remove("src/none", "")}, []string{"src/none conflict"}},
		"parent absent":          {[]allowlist.Edit{modify("src/none/x", "", "")}, []string{"src/none/x conflict"}},
		"parent a file":          {[]allowlist.Edit{create("src/c/x", "x\n")}, []string{"src/c/x file_type"}},
		"there already":          {[]allowlist.Edit{create("src/c", "x\n")}, []string{"src/c conflict"}},
		"lines":                  {[]allowlist.Edit{modify("src/a", "a\nb\nc\n", "x\ny\nz\n")}, []string{" too_large"}},
		"lines as they are":      {[]allowlist.Edit{modify("src/a", "a\nb\nc\n", "a\nx\ny\n")}, nil},
		"unread lines are none":  {[]allowlist.Edit{modify("configs/s", "s\n", "1\n2\n3\n4\n5\n6\n")}, []string{"configs/s protected"}},
		"total":                  {[]allowlist.Edit{modify("src/b", "b\n", string(bytes.Repeat([]byte("x"), 60))), modify("src/c", "c\n", string(bytes.Repeat([]byte("y"), 60)))}, []string{" too_large"}},
		"created and deleted":    {[]allowlist.Edit{create("src/x", ""), create("src/y", ""), create("src/z", "")}, []string{" too_large"}},
		"files":                  {[]allowlist.Edit{modify("src/a", "a\nb\nc\n", "a\nb\nc\n"), modify("src/b", "b\n", "b\n"), modify("src/c", "c\n", "c\n"), modify("src/d", "n\n", "n\n")}, []string{" too_large"}},
		"the zero edit":          {[]allowlist.Edit{{}}, []string{" path_invalid"}},
		"an operation of no use": {[]allowlist.Edit{{Op: 9, Path: "src/b"}}, []string{"src/b op_not_allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newFiles(t, files)
			before := readTree(t, dir)
			plan, err := loadPolicy(t, strictLimits).Plan(openTree(t, dir, nil), c.edits)
			wantTree(t, dir, before)
			if c.want == nil {
				must(t, err)
				if got := len(plan.Decisions()); got != len(c.edits) {
					t.Errorf("%d decisions", got)
				}
				return
			}
			if diff := cmp.Diff(c.want, codes(t, err)); diff != "" {
				t.Errorf("denials (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

// TestPlanIsACopy: what the caller does to the edits after Plan changes nothing.
func TestPlanIsACopy(t *testing.T) {
	t.Parallel()
	dir := newFiles(t, map[string]string{"src/a": "a\n", "configs/s": "s\n"})
	edits := []allowlist.Edit{modify("src/a", "a\n", "b\n")}
	plan, err := loadPolicy(t, treePolicyText).Plan(openTree(t, dir, nil), edits)
	must(t, err)
	want := readTree(t, dir)
	copy(edits[0].Content, "E\n")
	edits[0].Path = "configs/s"
	plan.Decisions()[0].Path = "configs/s"
	_, err = plan.Apply(t.Context())
	must(t, err)
	want["src/a"] = "-rw-r--r-- b\n"
	wantTree(t, dir, want)
	if _, err := plan.Apply(t.Context()); !errors.Is(err, allowlist.ErrApplied) {
		t.Errorf("second Apply: got %v, want ErrApplied", err)
	}
}

func TestPlanDigest(t *testing.T) {
	t.Parallel()
	dir := newFiles(t, map[string]string{"src/a": "a\n"})
	tree := openTree(t, dir, nil)
	p := loadPolicy(t, treePolicyText)
	seen := map[string]int{}
	for i, edits := range [][]allowlist.Edit{
		{modify("src/a", "a\n", "b\n")}, {modify("src/a", "a\n", "c\n")}, {remove("src/a", "a\n")},
		{create("src/b", "b\n")}, {create("src/c", "b\n")}, {create("src/b", "b\n"), create("src/c", "b\n")},
	} {
		for range 2 {
			plan, err := p.Plan(tree, edits)
			must(t, err)
			if other, ok := seen[plan.Digest()]; ok && other != i {
				t.Errorf("plans %d and %d have one digest", i, other)
			}
			seen[plan.Digest()] = i
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d digests of 6 plans", len(seen))
	}
}

// TestAudit: one record for each decision, and one for the set that was applied, joined by digests.
func TestAudit(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	dir := newFiles(t, map[string]string{"src/a": "a\n"})
	tree := openTree(t, dir, &allowlist.TreeOptions{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	p := loadPolicy(t, treePolicyText)
	_, err := p.Plan(tree, []allowlist.Edit{create("configs/\u202ex", "x"), create("src/ok", "x")})
	if !errors.Is(err, allowlist.ErrPathDisguised) {
		t.Fatal(err)
	}
	r, err := applyEdits(t, p, tree, modify("src/a", "a\n", "b\n"))
	must(t, err)
	type entry struct{ Msg, Path, Code, Policy, Plan, Receipt string }
	var got []entry
	for d := json.NewDecoder(&log); d.More(); {
		var e entry
		must(t, d.Decode(&e))
		if e.Policy != p.Digest() || e.Plan == "" {
			t.Errorf("record without digests: %+v", e)
		}
		e.Policy, e.Plan = "", ""
		got = append(got, e)
	}
	want := []entry{
		{Msg: "allowlist: decision", Path: `"configs/\u202ex"`, Code: "path_disguised"},
		{Msg: "allowlist: decision", Path: `"src/ok"`},
		{Msg: "allowlist: decision", Path: `"src/a"`},
		{Msg: "allowlist: applied", Receipt: r.Digest()},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// TestGuardProtectsItself: what the guard consists of cannot be edited, though a surface rule matches it.
func TestGuardProtectsItself(t *testing.T) {
	t.Parallel()
	dir := newFiles(t, map[string]string{
		"src/[policy].txt": treePolicyText, "src/a": "a\n", "src/store/x": "x\n", ".git": "gitdir: src/real/worktrees/one\n",
		"src/real/worktrees/one/commondir": "../..\n", "src/real/description": "d\n", "src/real/worktrees/one/HEAD": "x\n",
		"src/real/HEAD": "h\n", "src/real/objects/info/packs": "",
	})
	p, err := allowlist.LoadFile(filepath.Join(dir, "src/[policy].txt"))
	must(t, err)
	tree := openTree(t, dir, &allowlist.TreeOptions{Core: []string{filepath.Join(dir, "src/store"), "/elsewhere"}})
	want := []string{
		"src/[policy].txt protected", "src/real protected", "src/real/description protected",
		"src/real/worktrees/one/HEAD protected", "src/store protected", "src/store/new protected",
	}
	_, err = p.Plan(tree, []allowlist.Edit{
		modify("src/[policy].txt", treePolicyText, ""), modify("src/real/description", "d\n", ""), create("src/store", ""),
		create("src/store/new", ""), create("src/real", ""), modify("src/real/worktrees/one/HEAD", "x\n", ""),
		modify("src/a", "a\n", "b\n"), create("src/p", ""),
	})
	if diff := cmp.Diff(want, codes(t, err)); diff != "" {
		t.Errorf("denials (-want +got):\n%s", diff)
	}
}
