// SPDX-License-Identifier: Apache-2.0

package executor_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
)

// valid returns the smallest specification without faults.
func valid(t testing.TB) executor.Spec {
	t.Helper()
	return executor.Spec{Args: []string{"true"}, Workspace: t.TempDir()}
}

// fields returns the fields that have a fault, in the order of the report, and checks what holds for every fault.
func fields(t *testing.T, s executor.Spec) []string {
	t.Helper()
	err := s.Validate()
	if err == nil {
		return nil
	}
	faults, ok := errors.AsType[*executor.SpecError](err)
	if !ok || !errors.Is(err, executor.ErrInvalidSpec) {
		t.Fatalf("%v is not a SpecError", err)
	}
	var names []string
	for _, f := range faults.Faults {
		if f.Rule == "" || !strings.Contains(err.Error(), f.Field+": "+f.Rule) {
			t.Errorf("fault %+v is not in the text %q", f, err)
		}
		if !errors.Is(err, f) {
			t.Errorf("fault %+v cannot be found by errors.Is", f)
		}
		names = append(names, f.Field)
	}
	return names
}

func TestValid(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for name, change := range map[string]func(*executor.Spec){
		"smallest":            func(*executor.Spec) {},
		"arguments":           func(s *executor.Spec) { s.Args = []string{"./a b", "", "$(x)", "\n", "\xff"} },
		"directory":           func(s *executor.Spec) { s.Dir = "a/b" },
		"dots that are names": func(s *executor.Spec) { s.Dir, s.Hidden = "a/..b/...", []string{"..."} },
		"environment":         func(s *executor.Spec) { s.Env = map[string]string{"A": "", "b c": "x=y", "PATH": "/bin"} },
		"read-only and hidden": func(s *executor.Spec) {
			s.ReadOnly, s.Hidden = []string{".", "a/", "./b", "not/there"}, []string{"a/secret: key", "x"}
		},
		"mounts": func(s *executor.Spec) {
			s.Mounts = []executor.Mount{{Source: "/usr"}, {Source: "/usr", Target: "/opt/usr"}, {Source: "/opt", CopyOnWrite: true}}
		},
		"artifacts": func(s *executor.Spec) {
			s.Artifacts, s.ArtifactDir = []string{"**/*.{go,mod}", "bin/..x", "a,/b", `\{x`, "[.][.]/x"}, out
		},
		"artifacts in a directory to be made": func(s *executor.Spec) {
			s.Artifacts, s.ArtifactDir = []string{"**"}, filepath.Join(out, "not", "there")
		},
		"artifacts beside a workspace with the same beginning": func(s *executor.Spec) {
			s.Artifacts, s.ArtifactDir = []string{"**"}, s.Workspace+"-out"
		},
		"overlay beside the workspace":     func(s *executor.Spec) { s.Overlay = out },
		"overlay, slash at the end":        func(s *executor.Spec) { s.Overlay = out + "/" },
		"overlay where artifacts would go": func(s *executor.Spec) { s.Overlay, s.ArtifactDir = out, out },
		"no artifacts, any directory":      func(s *executor.Spec) { s.ArtifactDir = s.Workspace },
		"limits at their floor": func(s *executor.Spec) {
			s.Limits = executor.Limits{
				Wall: time.Millisecond, CPU: time.Millisecond, CPUs: 0.01, Memory: 16 << 20, Disk: 64 << 10, FileSize: 1,
				Output: 1, ArtifactBytes: 1, Processes: 1, OpenFiles: 16, ArtifactFiles: 1,
			}
		},
		"every capability": func(s *executor.Spec) { s.Require = executor.AllCapabilities },
		"label":            func(s *executor.Spec) { s.Label = strings.Repeat("x", 122) + "é 漢" },
	} {
		s := valid(t)
		change(&s)
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		change func(*executor.Spec)
		want   string // fields, separated by spaces
	}{
		{"no program", func(s *executor.Spec) { s.Args = nil }, "Args"},
		{"empty program", func(s *executor.Spec) { s.Args = []string{"", "x"} }, "Args[0]"},
		{"NUL in arguments", func(s *executor.Spec) { s.Args = []string{"a\x00", "", "\x00"} }, "Args[0] Args[2]"},
		{"no workspace", func(s *executor.Spec) { s.Workspace = "" }, "Workspace"},
		{"missing workspace", func(s *executor.Spec) { s.Workspace = file + ": none" }, "Workspace"},
		{"workspace is a file", func(s *executor.Spec) { s.Workspace = file }, "Workspace"},
		{"NUL in workspace", func(s *executor.Spec) { s.Workspace += "\x00" }, "Workspace"},
		{"empty name", func(s *executor.Spec) { s.Env = map[string]string{"": "x"} }, `Env[""]`},
		{"= in a name", func(s *executor.Spec) { s.Env = map[string]string{"A=B": "", "B: C=": ""} },
			`Env["A=B"] Env["B:|C="]`},
		{"NUL in a name", func(s *executor.Spec) { s.Env = map[string]string{"A\x00": ""} }, `Env["A\x00"]`},
		{"NUL in a value", func(s *executor.Spec) { s.Env = map[string]string{"A": "\x00"} }, `Env["A"]`},
		{"name and value", func(s *executor.Spec) { s.Env = map[string]string{"=\x00": "\x00"} },
			`Env["=\x00"] Env["=\x00"] Env["=\x00"]`},
		{"Dir upwards", func(s *executor.Spec) { s.Dir = "a/../b" }, "Dir"},
		{"Dir absolute", func(s *executor.Spec) { s.Dir = "/a" }, "Dir"},
		{"Dir with NUL", func(s *executor.Spec) { s.Dir = "a\x00" }, "Dir"},
		{"ReadOnly", func(s *executor.Spec) { s.ReadOnly = []string{"ok", "", "..", "/a", "a/..", "\x00"} },
			"ReadOnly[1] ReadOnly[2] ReadOnly[3] ReadOnly[4] ReadOnly[5]"},
		{"Hidden", func(s *executor.Spec) { s.Hidden = []string{"ok", "", "../a: b", "/a", "\x00", ".", "./"} },
			"Hidden[1] Hidden[2] Hidden[3] Hidden[4] Hidden[5] Hidden[6]"},
		{"no Source", func(s *executor.Spec) { s.Mounts = []executor.Mount{{}, {}} }, "Mounts[0].Source Mounts[1].Source"},
		{"Source", func(s *executor.Spec) {
			for _, source := range []string{"a", "/a/../b", "/\x00", "/", "//", "/./."} {
				s.Mounts = append(s.Mounts, executor.Mount{Source: source})
			}
		}, "Mounts[0].Source Mounts[1].Source Mounts[2].Source Mounts[3].Source Mounts[4].Source Mounts[5].Source"},
		{"Target", func(s *executor.Spec) {
			s.Mounts = []executor.Mount{{"/a", "b", false}, {"/a", "/..", false}, {"/a", "/\x00", false}, {"/a", "/.", true}}
		}, "Mounts[0].Target Mounts[1].Target Mounts[2].Target Mounts[3].Target"},
		{"same Target", func(s *executor.Spec) {
			s.Mounts = []executor.Mount{{Source: "/a"}, {Source: "/b", Target: "/a/"}, {Source: "/c"}, {Source: "/a/."}}
		}, "Mounts[1].Target Mounts[3].Target"},
		{"Overlay relative", func(s *executor.Spec) { s.Overlay = "a" }, "Overlay"},
		{"Overlay upwards", func(s *executor.Spec) { s.Overlay = "/a/../b" }, "Overlay"},
		{"Overlay is the root", func(s *executor.Spec) { s.Overlay = "//" }, "Overlay"},
		{"Overlay with NUL", func(s *executor.Spec) { s.Overlay = "/a\x00" }, "Overlay"},
		{"Overlay missing", func(s *executor.Spec) { s.Overlay = file + ": none" }, "Overlay"},
		{"Overlay is a file", func(s *executor.Spec) { s.Overlay = file }, "Overlay"},
		{"artifacts without a directory", func(s *executor.Spec) { s.Artifacts = []string{"a"} }, "ArtifactDir"},
		{"NUL in ArtifactDir", func(s *executor.Spec) { s.Artifacts, s.ArtifactDir = []string{"a"}, "/tmp/\x00" }, "ArtifactDir"},
		{"wall", func(s *executor.Spec) { s.Limits.Wall = time.Microsecond }, "Limits.Wall"},
		{"CPUs not a number", func(s *executor.Spec) { s.Limits.CPUs = math.NaN() }, "Limits.CPUs"},
		{"CPUs infinite", func(s *executor.Spec) { s.Limits.CPUs = math.Inf(1) }, "Limits.CPUs"},
		{"CPUs minus infinite", func(s *executor.Spec) { s.Limits.CPUs = math.Inf(-1) }, "Limits.CPUs"},
		{"CPUs beyond every quota", func(s *executor.Spec) { s.Limits.CPUs = 1e300 }, "Limits.CPUs"},
		{"CPUs below every quota", func(s *executor.Spec) { s.Limits.CPUs = 0.001 }, "Limits.CPUs"},
		{"memory", func(s *executor.Spec) { s.Limits.Memory = 16<<20 - 1 }, "Limits.Memory"},
		{"disk", func(s *executor.Spec) { s.Limits.Disk = 1 }, "Limits.Disk"},
		{"open files", func(s *executor.Spec) { s.Limits.OpenFiles = 15 }, "Limits.OpenFiles"},
		{"undefined capability", func(s *executor.Spec) { s.Require = executor.AllCapabilities + 1 }, "Require"},
		{"long label", func(s *executor.Spec) { s.Label = strings.Repeat("x", 129) }, "Label"},
		{"label of two lines", func(s *executor.Spec) { s.Label = "a\nb" }, "Label"},
		{"label with NUL", func(s *executor.Spec) { s.Label = "\x00" }, "Label"},
		{"label not UTF-8", func(s *executor.Spec) { s.Label = "\xff" }, "Label"},
	} {
		s := valid(t)
		tt.change(&s)
		want := strings.Fields(tt.want)
		for i := range want {
			want[i] = strings.ReplaceAll(want[i], "|", " ")
		}
		if diff := cmp.Diff(want, fields(t, s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// The zero value is invalid, and everything that is wrong with it is said at once.
func TestZeroSpec(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"Args", "Workspace"}, fields(t, executor.Spec{})); diff != "" {
		t.Error(diff)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	s := executor.Spec{
		Env:       map[string]string{"A=B": "x"},
		Dir:       "..",
		ReadOnly:  []string{"/etc"},
		Hidden:    []string{"a/../../b"},
		Mounts:    []executor.Mount{{Source: "relative"}},
		Artifacts: []string{"../escape"},
		Limits:    executor.Limits{Wall: -1, Memory: -1, Processes: -1},
		Require:   1 << 31,
		Label:     "\n",
	}
	want := []string{
		"Args", "Workspace", `Env["A=B"]`, "Dir", "ReadOnly[0]", "Hidden[0]", "Mounts[0].Source", "Artifacts[0]", "ArtifactDir",
		"Limits.Wall", "Limits.Memory", "Limits.Processes", "Require", "Label",
	}
	if diff := cmp.Diff(want, fields(t, s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Braces and backslashes must not hide what a pattern stands for.
func TestPatterns(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for _, p := range []string{
		"", "\x00", "..", "../a", "a/..", "a/../b", "/a", "/", "//", "a//..",
		"{..,a}", "{a,..}/b", "{a,../b}", "a/{b,..}", "{/etc,a}/b", "{a,/etc}", ".{.,a}/b", "{.,a}{.,b}/c", "a/{.{.,x},y}",
		`\..`, `.\./b`, `a/\.\.`, `\/a`, "{,a}/b", "{}/a", "[/../]", // the last one matches nothing, but reads badly
		"[", "{a", "a}", `a\`, "[]a]", strings.Repeat("{a,b}", 9), strings.Repeat("a", 1025),
	} {
		s := valid(t)
		s.Artifacts, s.ArtifactDir = []string{"ok/**", p}, out
		if diff := cmp.Diff([]string{"Artifacts[1]"}, fields(t, s)); diff != "" {
			t.Errorf("pattern %q (-want +got):\n%s", p, diff)
		}
	}
	for _, p := range []string{
		"a", "**", "*.go", ".", ".hidden", "...", "..a", "a..", "a/...", "{..a,b}", "{.,a}x", "a{/b,c}", ".{a,b}/c", "a,b", ",/b",
		`a\,b`, `\{..a`, "[a-z]/..[x]", "[.]", "{a,b}{c,d}/**/*.{x,y}", "a/{.,b}/c", "x{.,y}{.,z}", strings.Repeat("a", 1024),
	} {
		s := valid(t)
		s.Artifacts, s.ArtifactDir = []string{p}, out
		if err := s.Validate(); err != nil {
			t.Errorf("pattern %q: %v", p, err)
		}
	}
}

func TestArtifactDirOverlap(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	ws := filepath.Join(base, "ws")
	link := filepath.Join(base, "link")
	if err := errors.Join(os.MkdirAll(filepath.Join(ws, "sub"), 0o700), os.Symlink(ws, link)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{
		ws, ws + "/", ws + "/sub", ws + "/not/there", base, "/", base + "/x/../ws/sub", link, link + "/sub", link + "/not/there",
	} {
		for _, workspace := range []string{ws, link} {
			s := executor.Spec{Args: []string{"true"}, Workspace: workspace, Artifacts: []string{"a"}, ArtifactDir: dir}
			if diff := cmp.Diff([]string{"ArtifactDir"}, fields(t, s)); diff != "" {
				t.Errorf("workspace %q, ArtifactDir %q (-want +got):\n%s", workspace, dir, diff)
			}
		}
	}
}

// What a variant can write to is no trusted copy, and neither is what a link leads to.
func TestOverlayPlace(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	if err := errors.Join(os.MkdirAll(at("ws/sub"), 0o700), os.MkdirAll(at("out/sub"), 0o700), os.Mkdir(at("trusted"), 0o700),
		os.Symlink(at("trusted"), at("link")), os.Symlink(at("ws"), at("alias"))); err != nil {
		t.Fatal(err)
	}
	for name, overlay := range map[string]string{
		"the workspace": at("ws"), "inside": at("ws/sub"), "around": base, "through a link above": at("alias/sub"),
		"a link": at("link"), "a link with a slash": at("link") + "/", "a link with a dot": at("link") + "/.",
		"the artifacts": at("out"), "inside the artifacts": at("out/sub"),
	} {
		s := executor.Spec{Args: []string{"true"}, Workspace: at("ws"), Artifacts: []string{"a"}, ArtifactDir: at("out"), Overlay: overlay}
		if diff := cmp.Diff([]string{"Overlay"}, fields(t, s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A validation must not change what it judges.
func TestValidateChangesNothing(t *testing.T) {
	t.Parallel()
	s := valid(t)
	s.Env, s.Hidden = map[string]string{"A": "b"}, []string{"a//b/"}
	before := slices.Clone(s.Hidden)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, s.Hidden); diff != "" {
		t.Error(diff)
	}
	if entries, err := os.ReadDir(s.Workspace); err != nil || len(entries) != 0 {
		t.Errorf("the workspace has %v, %v", entries, err)
	}
}

// Whatever is accepted stays inside, read as text and after cleaning.
func FuzzValidate(f *testing.F) {
	f.Add("a/b", "secret", "out/**")
	f.Add("", ".", "{a,b}/*.go")
	f.Add("..", "a/../b", ".{.,a}/b")
	f.Add("/etc", "\x00", `.\./x`)
	workspace, out := f.TempDir(), f.TempDir()
	f.Fuzz(func(t *testing.T, dir, hidden, pattern string) {
		s := executor.Spec{
			Args: []string{"true"}, Workspace: workspace, Dir: dir, Hidden: []string{hidden}, ReadOnly: []string{hidden},
			Artifacts: []string{pattern}, ArtifactDir: out,
		}
		bad := fields(t, s)
		for field, p := range map[string]string{"Dir": dir, "Hidden[0]": hidden, "ReadOnly[0]": hidden, "Artifacts[0]": pattern} {
			if slices.Contains(bad, field) || field == "Dir" && p == "" {
				continue
			}
			if !filepath.IsLocal(p) || slices.Contains(strings.Split(p, "/"), "..") || strings.Contains(p, "\x00") {
				t.Errorf("%s %q was accepted", field, p)
			}
		}
	})
}
