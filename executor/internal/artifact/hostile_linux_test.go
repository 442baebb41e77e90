// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/artifact"
	"github.com/evoseal/containment/internal/testenv"
)

// inMemory is a fixture for tests that make very many files.
func inMemory(t testing.TB) fixture {
	t.Helper()
	top, err := os.MkdirTemp("/dev/shm", "artifact")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(top)) })
	f := fixture{top + "/work", top + "/secret", top + "/dest"}
	check(t, errors.Join(os.Mkdir(f.work, 0o755), os.Mkdir(f.secret, 0o755)))
	check(t, os.WriteFile(f.secret+"/key", []byte(secret), 0o644))
	return f
}

// A payload floods its workspace. What is named, and what lies where the flood is not, still comes back, and it is said
// that not everything was looked at.
func TestExtractBoundsTheWalk(t *testing.T) {
	t.Parallel()
	f := inMemory(t)
	f.write(t, "flood/zz-report", "x")
	f.write(t, "out/report", "x")
	for i := range 100_001 {
		check(t, os.Symlink("x", fmt.Sprintf("%s/flood/%d", f.work, i)))
	}
	taken, refused := f.take(t, f.request(t, "flood/zz-report", "out/*"))
	want(t, "beside the flood: taken", taken, []string{"flood/zz-report", "out/report"})
	want(t, "beside the flood: refused", keys(refused), nil)

	_, refused = f.take(t, f.request(t, "flood/*.txt"))
	if !strings.Contains(refused["flood"], "not looked at") {
		t.Errorf("refused %q", refused)
	}
}

func TestExtractStaysOutOfMounts(t *testing.T) {
	testenv.Need(t, "tmpfs-mount")
	t.Parallel()
	f := newFixture(t)
	f.write(t, "out/m/x", "below the mount")
	f.write(t, "out/ok", "x")
	f.write(t, "out/bound", "x")
	m := filepath.Join(f.work, "out/m")
	check(t, unix.Mount("none", m, "tmpfs", 0, ""))
	defer unix.Unmount(m, unix.MNT_DETACH)
	check(t, os.WriteFile(m+"/x", []byte("mounted"), 0o644))
	bound := filepath.Join(f.work, "out/bound") // a bind mount of the same file system has the same device number
	check(t, unix.Mount(filepath.Join(f.secret, "key"), bound, "", unix.MS_BIND, ""))
	defer unix.Unmount(bound, unix.MNT_DETACH)
	taken, refused := f.take(t, f.request(t, "out/**", "out/m/x"))
	want(t, "taken", taken, []string{"out/ok"})
	want(t, "refused", keys(refused), []string{"out/bound", "out/m", "out/m/x"})
}

func TestExtractUnreadable(t *testing.T) {
	testenv.Need(t, "unprivileged")
	t.Parallel()
	f := newFixture(t)
	f.write(t, "out/shut/f", "x")
	f.write(t, "out/f", "x")
	f.write(t, "out/ok", "x")
	check(t, os.Chmod(filepath.Join(f.work, "out/f"), 0))
	check(t, os.Chmod(filepath.Join(f.work, "out/shut"), 0))
	defer os.Chmod(filepath.Join(f.work, "out/shut"), 0o700)
	taken, refused := f.take(t, f.request(t, "out/**"))
	want(t, "taken", taken, []string{"out/ok"})
	want(t, "refused", keys(refused), []string{"out/f", "out/shut"})
}

// A destination that cannot be written is an error, not a refusal, and so is a root that is no directory.
func TestExtractFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(t, "f", "x")
	r := f.request(t, "f")
	r.Dest = filepath.Join(f.secret, "key", "below")
	if _, _, err := artifact.Extract(t.Context(), r); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("destination below a file: error %v", err)
	}
	r = f.request(t, "f")
	file, err := os.Open(filepath.Join(f.secret, "key"))
	check(t, err)
	defer file.Close()
	r.Root = file
	if _, _, err := artifact.Extract(t.Context(), r); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("root is a file: error %v", err)
	}
	check(t, file.Close())
	if _, _, err := artifact.Extract(t.Context(), r); err == nil {
		t.Error("a closed root was used")
	}
}

// Whatever a pattern says, what comes back is a regular file of the workspace, under its own name, and not git's.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{"**", "out/*", "{out,link}/**", "link/key", `\.git/*`, "[.]git/**", "./out/a", "out//a", "a{b", "*/../x",
		".\xffgit", "{..,out}/a", "link/../out/a", "**/{a,key}", "out/a/", "."} {
		f.Add(p)
	}
	fix := inMemory(f)
	for _, name := range []string{"out/a", "out/sub/b", ".git/config", "out/.GIT/hooks/x"} {
		fix.write(f, name, "inside")
	}
	check(f, os.Symlink(fix.secret, fix.work+"/link"))
	check(f, os.Symlink(fix.secret+"/key", fix.work+"/out/key"))
	f.Fuzz(func(t *testing.T, pattern string) {
		artifacts, _, err := artifact.Extract(t.Context(), fix.request(t, pattern))
		if err != nil {
			if !errors.Is(err, artifact.ErrRequest) {
				t.Fatal(err)
			}
			return
		}
		for _, a := range artifacts {
			data, err := os.ReadFile(filepath.Join(fix.dest, a.Path))
			if err != nil || string(data) != "inside" || a.Path != "out/a" && a.Path != "out/sub/b" {
				t.Errorf("%q gave %q with %q, %v", pattern, a.Path, data, err)
			}
		}
	})
}

func ExampleExtract() {
	work, _ := os.MkdirTemp("", "work")
	defer os.RemoveAll(work)
	_ = os.WriteFile(work+"/report.txt", []byte("42\n"), 0o644)
	_ = os.Symlink("/etc/passwd", work+"/stolen.txt")
	root, _ := os.Open(work)
	defer root.Close()

	limits := executor.DefaultLimits()
	artifacts, refused, err := artifact.Extract(context.Background(), artifact.Request{
		ID: "run", Root: root, Patterns: []string{"*.txt", "log/*"}, Dest: work + "-artifacts",
		MaxBytes: limits.ArtifactBytes, MaxFiles: limits.ArtifactFiles,
	})
	defer os.RemoveAll(work + "-artifacts")
	fmt.Println(artifacts[0].Path, artifacts[0].Size, err)
	for _, r := range refused {
		fmt.Printf("%s: %s\n", r.Path, r.Reason)
	}
	// Output:
	// report.txt 3 <nil>
	// stolen.txt: a symbolic link, or below one; links are never followed
	// log/*: no file matches
}
