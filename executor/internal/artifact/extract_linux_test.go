// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/artifact"
	"github.com/evoseal/containment/internal/testenv"
)

const secret = "content from outside"

// fixture is a workspace, a secret beside it and a destination.
type fixture struct{ work, secret, dest string }

func newFixture(t testing.TB) fixture {
	top := t.TempDir()
	f := fixture{filepath.Join(top, "work"), filepath.Join(top, "secret"), filepath.Join(top, "dest")}
	check(t, os.MkdirAll(f.work, 0o755))
	check(t, os.MkdirAll(f.secret, 0o755))
	check(t, os.WriteFile(filepath.Join(f.secret, "key"), []byte(secret), 0o644))
	return f
}

// write makes a file in the workspace.
func (f fixture) write(t testing.TB, name, text string) {
	t.Helper()
	p := filepath.Join(f.work, name)
	check(t, os.MkdirAll(filepath.Dir(p), 0o755))
	check(t, os.WriteFile(p, []byte(text), 0o644))
}

func (f fixture) request(t testing.TB, patterns ...string) artifact.Request {
	t.Helper()
	root, err := os.Open(f.work)
	check(t, err)
	t.Cleanup(func() { root.Close() })
	return artifact.Request{ID: "run", Root: root, Patterns: patterns, Dest: f.dest, MaxBytes: 1 << 20, MaxFiles: 1000}
}

// take extracts, compares what was reported with what lies in the destination, and returns the paths of the artifacts and
// of the refusals. Nothing may block.
func (f fixture) take(t testing.TB, r artifact.Request) (taken []string, refused map[string]string) {
	t.Helper()
	type outcome struct {
		artifacts []executor.Artifact
		refusals  []executor.Refusal
		err       error
	}
	done := make(chan outcome, 1)
	go func() {
		a, ref, err := artifact.Extract(t.Context(), r)
		done <- outcome{a, ref, err}
	}()
	select {
	case o := <-done:
		check(t, o.err)
		refused = map[string]string{}
		for _, ref := range o.refusals {
			refused[ref.Path] = ref.Reason
		}
		f.sent(t, r, o.artifacts, o.refusals)
		return f.verify(t, o.artifacts), refused
	case <-time.After(20 * time.Second):
		t.Fatal("still running")
		return nil, nil
	}
}

func (f fixture) verify(t testing.TB, artifacts []executor.Artifact) (paths []string) {
	t.Helper()
	for _, a := range artifacts {
		p := filepath.Join(f.dest, a.Path)
		data, err := os.ReadFile(p)
		check(t, err)
		sum := sha256.Sum256(data)
		if int64(len(data)) != a.Size || hex.EncodeToString(sum[:]) != a.SHA256 {
			t.Errorf("%q: %d bytes, sum %x; reported %d, %s", a.Path, len(data), sum, a.Size, a.SHA256)
		}
		fi, err := os.Lstat(p)
		check(t, err)
		if want := map[bool]fs.FileMode{false: 0o600, true: 0o700}[a.Executable]; fi.Mode() != want {
			t.Errorf("%q: mode %v, want %v", a.Path, fi.Mode(), want)
		}
		paths = append(paths, a.Path)
	}
	if left := temporary(t, f.dest); len(left) > 0 {
		t.Errorf("temporary files left: %q", left)
	}
	return paths
}

func temporary(t testing.TB, dest string) (left []string) {
	t.Helper()
	check(t, filepath.WalkDir(dest, func(p string, _ fs.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(p), ".run-") {
			left = append(left, p)
		}
		return err
	}))
	return left
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t testing.TB, what string, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func keys(m map[string]string) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

func TestExtractSelects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	odd := "out/new\nline \xff*"
	for _, name := range []string{"report.json", "out/a.txt", "out/sub/b.txt", "out/sub/c.bin", odd, "src/x.go", "..dots"} {
		f.write(t, name, name)
	}
	check(t, os.Chmod(filepath.Join(f.work, "out/sub/c.bin"), 0o4710))
	for _, c := range []struct {
		patterns, taken, refused []string
	}{
		{[]string{"report.json"}, []string{"report.json"}, nil},
		{[]string{"./report.json", "report.json"}, []string{"report.json"}, nil},
		{[]string{"out/*.txt"}, []string{"out/a.txt"}, nil},
		{[]string{"./out/**"}, []string{"out/a.txt", odd, "out/sub/b.txt", "out/sub/c.bin"}, nil},
		{[]string{"**/*.txt", "out/**/*.txt"}, []string{"out/a.txt", "out/sub/b.txt"}, nil},
		{[]string{"{out/sub,src}/*"}, []string{"out/sub/b.txt", "out/sub/c.bin", "src/x.go"}, nil},
		{[]string{"..dots"}, []string{"..dots"}, nil},
		{[]string{"none", "none/*", "src/x.go/y", "out"}, nil, []string{"none", "none/*", "out", "src/x.go/y"}},
		{nil, nil, nil},
	} {
		f.dest = filepath.Join(t.TempDir(), "new", "dest")
		taken, refused := f.take(t, f.request(t, c.patterns...))
		slices.Sort(taken)
		slices.Sort(c.taken)
		want(t, fmt.Sprintf("%q: taken", c.patterns), taken, c.taken)
		want(t, fmt.Sprintf("%q: refused", c.patterns), keys(refused), c.refused)
	}
}

func TestExtractRefusesKinds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(t, "good", "x")
	f.write(t, "twice", "x")
	f.write(t, "real/inner", "x")
	in := func(name string) string { return filepath.Join(f.work, name) }
	check(t, os.Link(in("twice"), in("second")))
	check(t, os.Symlink(filepath.Join(f.secret, "key"), in("link")))
	check(t, os.Symlink("good", in("inside")))
	check(t, os.Symlink(f.secret, in("linkdir")))
	check(t, os.Symlink("real", in("reallink")))
	check(t, os.Symlink("/proc/self/fd/0", in("magic")))
	check(t, unix.Mkfifo(in("pipe"), 0o644))
	check(t, unix.Mknod(in("sock"), unix.S_IFSOCK|0o644, 0))

	bad := []string{"inside", "link", "linkdir", "magic", "pipe", "reallink", "second", "sock", "twice"}
	taken, refused := f.take(t, f.request(t, "**"))
	want(t, "by a pattern: taken", taken, []string{"good", "real/inner"})
	want(t, "by a pattern: refused", keys(refused), bad)

	literal := append(bad, "linkdir/key", "reallink/inner", "real")
	taken, refused = f.take(t, f.request(t, append(literal, "good")...))
	slices.Sort(literal)
	want(t, "by name: taken", taken, []string{"good"})
	want(t, "by name: refused", keys(refused), literal)
	for p, reason := range map[string]string{"pipe": "FIFO", "sock": "socket", "twice": "hard link", "real": "directory",
		"linkdir/key": "symbolic link", "link": "symbolic link"} {
		if !strings.Contains(refused[p], reason) {
			t.Errorf("%s: reason %q does not say %q", p, refused[p], reason)
		}
	}
	taken, refused = f.take(t, f.request(t, "linkdir/*", "reallink/**"))
	want(t, "search below a link: taken", taken, nil)
	want(t, "search below a link: refused", keys(refused), []string{"linkdir", "linkdir/*", "reallink", "reallink/**"})
}

func TestExtractRefusesDevice(t *testing.T) {
	testenv.Need(t, "root")
	t.Parallel()
	f := newFixture(t)
	if err := unix.Mknod(filepath.Join(f.work, "zero"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
		t.Fatal(err)
	}
	taken, refused := f.take(t, f.request(t, "zero"))
	want(t, "taken", taken, nil)
	want(t, "refused", keys(refused), []string{"zero"})
}

func TestExtractNeverReturnsGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bad := []string{".git", ".GIT", ".Git ", ".git.", "git~1", ".git::$INDEX_ALLOCATION", ".g\u200cit", "GIT~2"}
	var listed []string
	for _, name := range bad {
		f.write(t, "out/"+name+"/hooks/pre-commit", "#!/bin/sh")
		listed = append(listed, "out/"+name)
	}
	for _, name := range []string{".gitignore", "git", "git~", "agit~1", ".github/x"} {
		f.write(t, "out/"+name, "")
	}
	slices.Sort(listed)
	taken, refused := f.take(t, f.request(t, "out/**"))
	slices.Sort(taken)
	want(t, "taken", taken, []string{"out/.github/x", "out/.gitignore", "out/agit~1", "out/git", "out/git~"})
	want(t, "refused", keys(refused), listed)

	taken, refused = f.take(t, f.request(t, "out/.git/hooks/pre-commit", "out/.GIT/**", "out/.git/*/pre-commit"))
	want(t, "declared: taken", taken, nil)
	if len(refused) < 3 {
		t.Errorf("declared: refused %q", refused)
	}
}

func TestExtractExcludes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"a/secret/x", "a/secrets", "a/.env", "a/b/.env/y", "a/ok", ".env"} {
		f.write(t, name, "x")
	}
	r := f.request(t, "a/**", "a/secret/x", ".env")
	r.Exclude, r.ExcludeNames = []string{"./a/secret"}, []string{".env"}
	taken, refused := f.take(t, r)
	want(t, "taken", taken, []string{"a/ok", "a/secrets"})
	want(t, "refused", keys(refused), []string{".env", "a/.env", "a/b/.env", "a/secret", "a/secret/x"})
}

func TestExtractCaps(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"1", "2", "3", "4"} {
		f.write(t, name, "12345")
	}
	f.write(t, "3", strings.Repeat("x", 6))
	r := f.request(t, "*")
	r.MaxBytes = 15
	taken, refused := f.take(t, r)
	want(t, "bytes: taken", taken, []string{"1", "2", "4"})
	want(t, "bytes: refused", keys(refused), []string{"3"})
	if _, err := os.Stat(filepath.Join(f.dest, "3")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is too large came back: %v", err)
	}
	r = f.request(t, "*")
	r.MaxFiles = 2
	taken, refused = f.take(t, r)
	want(t, "files: taken", taken, []string{"1", "2"})
	want(t, "files: refused", keys(refused), []string{"3"})
}

func TestExtractDepth(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	within := strings.Repeat("d/", executor.ArtifactDepth-1) + "f"
	f.write(t, within, "x")
	f.write(t, "d/"+within, "x")
	taken, refused := f.take(t, f.request(t, "**/f"))
	want(t, "taken", taken, []string{within})
	want(t, "refused", keys(refused), []string{strings.Repeat("d/", executor.ArtifactDepth-1) + "d"})
	taken, refused = f.take(t, f.request(t, "d/"+within, within))
	want(t, "by name: taken", taken, []string{within})
	want(t, "by name: refused", keys(refused), []string{"d/" + within})
}

func TestExtractSparse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, size := range map[string]int64{"huge": 10 << 30, "fits": 8 << 20, "hole": 1 << 20} {
		f.write(t, name, "")
		check(t, os.Truncate(filepath.Join(f.work, name), size))
	}
	mid, err := os.OpenFile(filepath.Join(f.work, "fits"), os.O_WRONLY, 0)
	check(t, err)
	_, err = mid.WriteAt([]byte("middle"), 5<<20)
	check(t, errors.Join(err, mid.Close()))
	r := f.request(t, "*")
	r.MaxBytes = 64 << 20
	start := time.Now()
	taken, refused := f.take(t, r)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	want(t, "taken", taken, []string{"fits", "hole"})
	want(t, "refused", keys(refused), []string{"huge"})
	var st unix.Stat_t
	check(t, unix.Stat(filepath.Join(f.dest, "fits"), &st))
	if st.Size != 8<<20 || st.Blocks*512 > 1<<20 {
		t.Errorf("size %d, allocated %d", st.Size, st.Blocks*512)
	}
}

func TestExtractFlood(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(t, "out/report", "x")
	for i := range 1100 {
		check(t, os.Symlink("x", filepath.Join(f.work, fmt.Sprintf("out/l%d", i))))
	}
	_, refusals, err := artifact.Extract(t.Context(), f.request(t, "out/**"))
	check(t, err)
	if last := refusals[len(refusals)-1]; len(refusals) != 1001 || !strings.Contains(last.Reason, "100 more") {
		t.Errorf("%d refusals, the last is %v", len(refusals), last)
	}
}

func TestExtractStopsWithContext(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(t, "f", "x")
	cause := errors.New("clean-up takes too long")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for _, pattern := range []string{"f", "*"} {
		// A payload can make the extraction slow; that must not turn its verdict into an error.
		a, refused, err := artifact.Extract(ctx, f.request(t, pattern))
		if err != nil || len(a) > 0 || len(refused) == 0 || !strings.Contains(refused[len(refused)-1].Reason, "time") {
			t.Errorf("%s: %v, refused %v, error %v", pattern, a, refused, err)
		}
	}
	if left := temporary(t, f.dest); len(left) > 0 {
		t.Errorf("temporary files left: %q", left)
	}
}

// Sparse files that each fit but for their last bytes cost neither time without end nor an error.
func TestExtractBoundsWhatItReads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 200 {
		name := fmt.Sprintf("out/%03d", i)
		f.write(t, name, "x")
		check(t, os.Truncate(filepath.Join(f.work, name), 1<<20+1))
	}
	start := time.Now()
	a, refused, err := artifact.Extract(t.Context(), f.request(t, "out/**"))
	if err != nil || len(a) > 1 || len(refused) < 199 {
		t.Errorf("%d artifacts, %d refused, error %v", len(a), len(refused), err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
}
