// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/scratch"
)

func TestCopyKeeps(t *testing.T) {
	t.Parallel()
	odd := "new\nline \xff\xfe *"
	long := strings.Repeat("n", 255)
	src := plant(t,
		entry{"plain", file("text", 0o644)}, entry{"exec", file("#!", 0o755)}, entry{"empty", file("", 0o600)},
		entry{"open", file("o", 0o666)}, entry{"sealed", file("", 0o400)},
		entry{"sub/" + odd, file("odd", 0o640)}, entry{"sub/" + long, file("long", 0o644)},
		entry{"void", dir(0o711)}, entry{"setgid", dir(0o755)},
		entry{"setuid", file("s", 0o755)},
		entry{"out", link("/etc/passwd")}, entry{"up", link("../../..")}, entry{"loop", link("loop")},
		entry{"dangling", link(strings.Repeat("x/", 2000))})
	check(t, os.Chmod(filepath.Join(src, "setuid"), 0o755|os.ModeSetuid|os.ModeSetgid))
	check(t, os.Chmod(filepath.Join(src, "setgid"), 0o755|os.ModeSetgid|os.ModeSticky))
	old := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	for _, name := range []string{"plain", "sub", "sealed", "."} {
		check(t, os.Chtimes(filepath.Join(src, name), old, old))
	}
	dst := empty(t)
	stats, err := scratch.Copy(t.Context(), src, dst, large)
	check(t, err)

	if diff := cmp.Diff(names(t, src), names(t, dst)); diff != "" {
		t.Errorf("names differ:\n%s", diff)
	}
	want := scratch.Stats{Files: 8, Dirs: 3, Links: 4, Bytes: 4 + 2 + 1 + 3 + 4 + 1, Allocated: stats.Allocated}
	if diff := cmp.Diff(want, stats); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	for _, name := range names(t, src) {
		name = strings.TrimRight(name, "/@")
		a, b := stat(t, filepath.Join(src, name)), stat(t, filepath.Join(dst, name))
		if a.Mode&^0o7000 != b.Mode || a.Size != b.Size && a.Mode&unix.S_IFMT == unix.S_IFREG {
			t.Errorf("%q: mode %#o, size %d became mode %#o, size %d", name, a.Mode, a.Size, b.Mode, b.Size)
		}
		switch a.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			before, _ := os.Readlink(filepath.Join(src, name))
			if after, err := os.Readlink(filepath.Join(dst, name)); after != before {
				t.Errorf("%q: link to %q became %q, %v", name, before, after, err)
			}
		default:
			if a.Mtim != b.Mtim {
				t.Errorf("%q: time %v became %v", name, a.Mtim, b.Mtim)
			}
		}
	}
	if a, b := stat(t, src), stat(t, dst); a.Mode != b.Mode || a.Mtim != b.Mtim {
		t.Errorf("top: mode %#o time %v became %#o %v", a.Mode, a.Mtim, b.Mode, b.Mtim)
	}
}

// Contents of every size around the steps in which data is moved.
func TestCopyContent(t *testing.T) {
	t.Parallel()
	src, dst := plant(t), empty(t)
	sizes := []int{1, 4095, 4096, 4097, 128 << 10, 128<<10 + 1, 4 << 20, 4<<20 + 1, 9 << 20}
	for _, n := range sizes {
		data := make([]byte, n)
		rand.Read(data)
		check(t, os.WriteFile(filepath.Join(src, fmt.Sprint(n)), data, 0o644))
	}
	_, err := scratch.Copy(t.Context(), src, dst, large)
	check(t, err)
	for _, n := range sizes {
		sameFile(t, filepath.Join(src, fmt.Sprint(n)), filepath.Join(dst, fmt.Sprint(n)))
	}
}

// From a disk to memory the kernel does not copy by itself.
func TestCopyAcrossFileSystems(t *testing.T) {
	t.Parallel()
	data := make([]byte, 5<<20)
	rand.Read(data)
	src := plant(t, entry{"f", file(string(data), 0o644)}, entry{"sparse", sparse(64<<20, 3<<20)})
	dst := emptyIn(t, memory)
	_, err := scratch.Copy(t.Context(), src, dst, large)
	check(t, err)
	for _, name := range []string{"f", "sparse"} {
		sameFile(t, filepath.Join(src, name), filepath.Join(dst, name))
	}
	if st := stat(t, filepath.Join(dst, "sparse")); st.Blocks*512 > 1<<20 {
		t.Errorf("the holes became %d bytes", st.Blocks*512)
	}
}

func sameFile(t *testing.T, a, b string) {
	t.Helper()
	want, err := os.ReadFile(a)
	check(t, err)
	got, err := os.ReadFile(b)
	check(t, err)
	if string(got) != string(want) {
		t.Errorf("%s: %d bytes became %d other ones", filepath.Base(a), len(want), len(got))
	}
}

// sparse makes a file of the given size with one page of data at off.
func sparse(size, off int64) node {
	return func(t testing.TB, path string) {
		f, err := os.Create(path)
		check(t, err)
		defer f.Close()
		check(t, f.Truncate(size))
		_, err = f.WriteAt([]byte(strings.Repeat("data", 1024)), off)
		check(t, err)
	}
}

func TestCopySparse(t *testing.T) {
	t.Parallel()
	const size = 10 << 30
	src, dst := plant(t, entry{"big", sparse(size, 5<<30)}, entry{"void", sparse(size, 0)}), empty(t)
	check(t, os.Truncate(filepath.Join(src, "void"), 0))
	check(t, os.Truncate(filepath.Join(src, "void"), size)) // nothing but a hole
	o := large
	o.MaxBytes = 64 << 10 // holes are not counted
	start := time.Now()
	stats, err := scratch.Copy(t.Context(), src, dst, o)
	check(t, err)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if stats.Bytes != 2*size || stats.Allocated > 1<<20 {
		t.Errorf("bytes %d, allocated %d", stats.Bytes, stats.Allocated)
	}
	f, err := os.Open(filepath.Join(dst, "big"))
	check(t, err)
	defer f.Close()
	buf := make([]byte, 8)
	if _, err := f.ReadAt(buf, 5<<30); err != nil || string(buf) != "datadata" {
		t.Errorf("in the middle: %q, %v", buf, err)
	}
}

func TestCopyLeavesOut(t *testing.T) {
	t.Parallel()
	src := plant(t, entry{".git/config", file("", 0o600)}, entry{"a/.git", file("gitdir:", 0o600)},
		entry{"a/.env", link("/etc/passwd")}, entry{"a/.envrc", file("", 0o600)}, entry{"a/b/secret", fifo},
		entry{"a/b/c", file("", 0o600)}, entry{"b/secret", file("", 0o600)}, entry{".GIT/x", file("", 0o600)})
	dst, o := empty(t), large
	o.OmitNames, o.Omit = []string{".git", ".env"}, []string{"a/b/secret", "./b/", "no/such/path"}
	_, err := scratch.Copy(t.Context(), src, dst, o)
	check(t, err)
	want := []string{".GIT/", ".GIT/x", "a/", "a/.envrc", "a/b/", "a/b/c"}
	if diff := cmp.Diff(want, names(t, dst)); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
}

func TestCopyRefusesSpecialFiles(t *testing.T) {
	t.Parallel()
	src := plant(t, entry{"a/pipe", fifo}, entry{"sock", socket}, entry{"a/good", file("x", 0o600)})
	err := within(t, 5*time.Second, func() error {
		_, err := scratch.Copy(t.Context(), src, empty(t), large)
		return err
	})
	if !errors.Is(err, scratch.ErrSpecial) {
		t.Fatalf("error %v", err)
	}
	got := map[string]string{}
	for _, e := range entryErrors(err) {
		got[e.Path] = e.Kind
	}
	if diff := cmp.Diff(map[string]string{"a/pipe": "FIFO", "sock": "socket"}, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if !strings.Contains(err.Error(), "Spec.Hidden") {
		t.Errorf("%v does not name the way out", err)
	}
}

// entryErrors returns every EntryError in the tree of an error.
func entryErrors(err error) (all []*scratch.EntryError) {
	var list []error
	switch e := err.(type) {
	case *scratch.EntryError:
		return []*scratch.EntryError{e}
	case interface{ WrappedErrors() []error }: // before Unwrap, which only gives the first of them
		list = e.WrappedErrors()
	case interface{ Unwrap() []error }:
		list = e.Unwrap()
	case interface{ Unwrap() error }:
		list = []error{e.Unwrap()}
	}
	for _, sub := range list {
		all = append(all, entryErrors(sub)...)
	}
	return all
}

func TestCopyReportsAtMostTwenty(t *testing.T) {
	t.Parallel()
	var tree []entry
	for i := range 50 {
		tree = append(tree, entry{fmt.Sprintf("d%d/pipe", i), fifo})
	}
	_, err := scratch.Copy(t.Context(), plant(t, tree...), empty(t), large)
	if n := len(entryErrors(err)); n != 20 {
		t.Errorf("%d errors: %v", n, err)
	}
}

func TestCopyLimits(t *testing.T) {
	t.Parallel()
	src := plant(t, entry{"a/1", file("12345", 0o600)}, entry{"a/2", file("12345", 0o600)}, entry{"l", link("a")})
	for _, c := range []struct {
		bytes, files int64
		want         error
	}{{10, 4, nil}, {9, 4, scratch.ErrLimit}, {10, 3, scratch.ErrLimit}, {1, 1, scratch.ErrLimit}} {
		_, err := scratch.Copy(t.Context(), src, empty(t), scratch.Options{MaxBytes: c.bytes, MaxFiles: c.files})
		if !errors.Is(err, c.want) {
			t.Errorf("%d bytes, %d entries: %v, want %v", c.bytes, c.files, err, c.want)
		}
	}
}

func TestCopyDestination(t *testing.T) {
	t.Parallel()
	src := plant(t, entry{"f", file("x", 0o600)})
	full, open, inside := empty(t), empty(t), filepath.Join(src, "copy")
	check(t, os.WriteFile(filepath.Join(full, "f"), nil, 0o600))
	check(t, os.Chmod(open, 0o770))
	check(t, os.Mkdir(inside, 0o700))
	linked := filepath.Join(temp(t), "link")
	check(t, os.Symlink(empty(t), linked))
	for name, dst := range map[string]string{
		"not empty": full, "writable by others": open, "missing": filepath.Join(open, "none"), "a file": src + "/f",
		"inside the source": inside, "the source": src, "a link": linked,
	} {
		if _, err := scratch.Copy(t.Context(), src, dst, large); !errors.Is(err, scratch.ErrDestination) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := scratch.Copy(t.Context(), src+"/none", empty(t), large); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing source: error %v", err)
	}
}

func TestCopyThroughTopLink(t *testing.T) {
	t.Parallel()
	src, dst := plant(t, entry{"real/f", file("x", 0o600)}, entry{"l", link("real")}), empty(t)
	_, err := scratch.Copy(t.Context(), filepath.Join(src, "l"), dst, large)
	check(t, err)
	if got := names(t, dst); !slices.Equal(got, []string{"f"}) {
		t.Errorf("copy holds %q", got)
	}
}

func TestCopyStops(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := scratch.Copy(ctx, plant(t, entry{"f", file("x", 0o600)}), empty(t), large)
	if !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
}

// Twice the path that a call takes, with as many descriptors as a shell gives.
func TestCopyDeep(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("d", 200)
	src := plantIn(t, memory, entry{"short", deep(3000, "d")}, entry{"long", deep(60, name)}, entry{"z", deep(40, "d")})
	for i := range 40 { // more to do on the way back up
		p := filepath.Join(src, "z", strings.Repeat("d/", i))
		check(t, os.Mkdir(p+"/second", 0o755))
		check(t, os.WriteFile(p+"/second/f", nil, 0o600))
	}
	dst := emptyIn(t, memory)
	_, err := scratch.Copy(t.Context(), src, dst, large)
	check(t, err)
	if n := walkDown(t, dst+"/short", "d"); n != 3000 {
		t.Errorf("%d of 3,000 levels", n)
	}
	if n := walkDown(t, dst+"/long", name); n != 60 {
		t.Errorf("%d of 60 long levels", n)
	}
	for i := range 40 {
		if _, err := os.Stat(filepath.Join(dst, "z", strings.Repeat("d/", i), "second/f")); err != nil {
			t.Error(err)
		}
	}
}
