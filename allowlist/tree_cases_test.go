// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/evoseal/containment/allowlist"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func readCases(t *testing.T, name string, to any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	must(t, json.Unmarshal(data, to))
}

type setupStep struct{ Do, Name, Target, Content, Mode string }

func (s setupStep) run(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, s.Name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	switch s.Do {
	case "file":
		mode, err := strconv.ParseUint(s.Mode, 8, 32)
		must(t, err)
		must(t, os.WriteFile(path, []byte(s.Content), 0o600))
		must(t, unix.Chmod(path, uint32(mode)))
	case "mkdir":
		must(t, os.MkdirAll(path, 0o755))
	case "symlink":
		must(t, os.Symlink(s.Target, path))
	case "hardlink":
		must(t, os.Link(filepath.Join(dir, s.Target), path))
	case "fifo":
		must(t, unix.Mkfifo(path, 0o644))
	case "socket":
		listenAt(t, path)
	default:
		t.Fatalf("unknown setup %q", s.Do)
	}
}

// TestPathCases runs every case through check and apply.
func TestPathCases(t *testing.T) {
	var file struct {
		Policy json.RawMessage
		Base   map[string]string
		Cases  []struct {
			ID, Category, Op, Code string
			Path                   string `json:"path_go_quoted"`
			Setup                  []setupStep
			Allow                  bool
		}
	}
	readCases(t, "allowlist_paths.json", &file)
	policy := loadPolicy(t, string(file.Policy))
	ops := map[string]allowlist.Op{"create": allowlist.Create, "modify": allowlist.Modify, "delete": allowlist.Delete}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
				path, err := strconv.Unquote(c.Path)
				must(t, err)
				dir := newFiles(t, file.Base)
				for _, s := range c.Setup {
					s.run(t, dir)
				}
				e := allowlist.Edit{Op: ops[c.Op], Path: path}
				if c.Op != "delete" {
					e.Content = []byte("x\n")
				}
				if c.Op != "create" {
					e.Base = allowlist.Sum(plainRead(filepath.Join(dir, path)))
				}
				checkCase(t, policy, openTree(t, dir, o), dir, e, c.Allow, c.Code)
			})
		})
	}
}

// plainRead is what an unsuspecting program reads, or nothing. It does not wait for the other end of a FIFO.
func plainRead(path string) []byte {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return data
}

// checkCase judges and applies one edit, and compares the tree with what the verdict promises.
func checkCase(t *testing.T, p *allowlist.Policy, tree *allowlist.Tree, dir string, e allowlist.Edit, allow bool, code string) {
	t.Helper()
	want := readTree(t, dir)
	r, err := applyEdits(t, p, tree, e)
	if !allow {
		if diff := cmp.Diff([]string{e.Path + " " + code}, codes(t, err)); diff != "" {
			t.Errorf("denials (-want +got):\n%s", diff)
		}
		wantTree(t, dir, want)
		return
	}
	must(t, err)
	before := maps.Clone(want)
	expectEdit(want, e)
	wantTree(t, dir, want)
	must(t, r.Revert(t.Context()))
	wantTree(t, dir, before)
}

// expectEdit changes a description of a tree as the edit should change the tree.
func expectEdit(tree map[string]string, e allowlist.Edit) {
	for p := filepath.Dir(e.Path); p != "." && e.Op == allowlist.Create; p = filepath.Dir(p) {
		if _, ok := tree[p]; !ok {
			tree[p] = (fs.ModeDir | 0o755).String()
		}
	}
	switch e.Op {
	case allowlist.Delete:
		delete(tree, e.Path)
	case allowlist.Create:
		tree[e.Path] = fs.FileMode(0o644).String() + " " + string(e.Content)
	case allowlist.Modify:
		tree[e.Path] = tree[e.Path][:len("-rw-r--r-- ")] + string(e.Content)
	}
}

// TestPatchCases reads, judges and applies patches.
func TestPatchCases(t *testing.T) {
	var file struct {
		Policy json.RawMessage
		Base   map[string]string
		Cases  []struct {
			ID, Patch, Code string
			Allow           bool
			Result          map[string]*string
		}
	}
	readCases(t, "allowlist_patches.json", &file)
	policy := loadPolicy(t, string(file.Policy))
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
				dir := newFiles(t, file.Base)
				tree := openTree(t, dir, o)
				want := readTree(t, dir)
				edits, err := allowlist.ParsePatch([]byte(c.Patch), tree)
				if err == nil {
					_, err = applyEdits(t, policy, tree, edits...)
				}
				if c.Allow {
					must(t, err)
				} else if denied := firstCode(t, err); denied != c.Code {
					t.Errorf("got %v, want %q", err, c.Code)
				}
				for path, content := range c.Result {
					e := allowlist.Edit{Op: allowlist.Delete, Path: path}
					if content != nil {
						e.Op, e.Content = allowlist.Create, []byte(*content)
					}
					expectEdit(want, e)
				}
				wantTree(t, dir, want)
			})
		})
	}
}

func firstCode(t *testing.T, err error) string {
	t.Helper()
	list := codes(t, err)
	_, code := filepath.Split(list[0])
	return code[lastSpace(code)+1:]
}

func lastSpace(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == ' ' {
			return i
		}
	}
	return -1
}

// TestRegionCases judges and applies edits under a scope.
func TestRegionCases(t *testing.T) {
	var file struct {
		Cases []struct {
			ID, Path, Op, Code, New string
			Paths, Directives, Gate []string
			Base                    *string
			Allow                   bool
			Scope                   struct {
				Kind, Begin, End string
				Functions        []string
			}
		}
	}
	readCases(t, "allowlist_regions.json", &file)
	for _, c := range file.Cases {
		rule := map[string]any{"paths": c.Paths, "ops": []string{"modify"}}
		if c.Paths == nil {
			rule["paths"] = []string{c.Path}
		}
		if c.Directives != nil {
			rule["directives"] = c.Directives
		}
		switch c.Scope.Kind {
		case "markers":
			rule["regions"] = map[string]string{"begin": c.Scope.Begin, "end": c.Scope.End}
		case "go_bodies":
			rule["go_bodies"] = c.Scope.Functions
		default:
			rule["ops"] = []string{"modify", "create"}
		}
		gate := c.Gate
		if gate == nil {
			gate = []string{}
		}
		text, err := json.Marshal(map[string]any{"version": 1, "surface": []any{rule}, "gate": gate})
		must(t, err)
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			policy := loadPolicy(t, string(text))
			dir := newFiles(t, map[string]string{"keep.md": "keep\n"})
			e := create(c.Path, c.New)
			if c.Base != nil {
				putFile(t, dir, c.Path, *c.Base, 0o644)
			}
			if c.Op == "modify" {
				base := ""
				if c.Base != nil {
					base = *c.Base
				}
				e = modify(c.Path, base, c.New)
			}
			checkCase(t, policy, openTree(t, dir, nil), dir, e, c.Allow, c.Code)
		})
	}
}
