// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"context"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/scratch"
)

// node makes one entry of a test tree.
type node func(t testing.TB, path string)

func file(text string, mode fs.FileMode) node {
	return func(t testing.TB, path string) {
		check(t, os.WriteFile(path, []byte(text), 0o600))
		check(t, os.Chmod(path, mode))
	}
}

func dir(mode fs.FileMode) node {
	return func(t testing.TB, path string) {
		check(t, os.MkdirAll(path, 0o700))
		check(t, os.Chmod(path, mode))
	}
}

func link(target string) node {
	return func(t testing.TB, path string) { check(t, os.Symlink(target, path)) }
}

func fifo(t testing.TB, path string) { check(t, unix.Mkfifo(path, 0o600)) }

func socket(t testing.TB, path string) { check(t, unix.Mknod(path, unix.S_IFSOCK|0o600, 0)) }

// entry is a path and what stands there. Parents that are missing are made with mode 0755.
type entry struct {
	path string
	make node
}

// plant makes the entries below a new directory, in order, and returns it.
func plant(t testing.TB, entries ...entry) string {
	t.Helper()
	return plantIn(t, os.TempDir(), entries...)
}

// memory is where tests with thousands of entries work: some disks need a millisecond for each.
const memory = "/dev/shm"

func plantIn(t testing.TB, place string, entries ...entry) string {
	t.Helper()
	top := filepath.Join(tempIn(t, place), "tree")
	check(t, os.Mkdir(top, 0o755))
	for _, e := range entries {
		p := filepath.Join(top, e.path)
		check(t, os.MkdirAll(filepath.Dir(p), 0o755))
		e.make(t, p)
	}
	return top
}

// temp is a directory that Remove takes away: the testing package's own cannot remove what these tests build.
func temp(t testing.TB) string {
	t.Helper()
	return tempIn(t, os.TempDir())
}

func tempIn(t testing.TB, place string) string {
	t.Helper()
	top, err := os.MkdirTemp(place, "scratch")
	check(t, err)
	t.Cleanup(func() {
		// t.Context is done by now.
		if err := scratch.Remove(context.Background(), top); err != nil {
			t.Errorf("clean-up: %v", err)
		}
	})
	return top
}

// empty is a destination.
func empty(t testing.TB) string {
	t.Helper()
	return emptyIn(t, os.TempDir())
}

func emptyIn(t testing.TB, place string) string {
	t.Helper()
	p := filepath.Join(tempIn(t, place), "copy")
	check(t, os.Mkdir(p, 0o700))
	return p
}

// deep makes a chain of directories called name, by descriptor, because the path may be longer than a call takes, and a
// file "end" in the last one.
func deep(levels int, name string) node {
	return func(t testing.TB, path string) {
		check(t, os.Mkdir(path, 0o755))
		fd, err := unix.Open(path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(t, err)
		for range levels {
			check(t, unix.Mkdirat(fd, name, 0o755))
			next, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			check(t, err)
			check(t, unix.Close(fd))
			fd = next
		}
		end, err := unix.Openat(fd, "end", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		check(t, err)
		check(t, unix.Close(end))
		check(t, unix.Close(fd))
	}
}

// walkDown follows a chain made by deep and returns the number of levels above "end".
func walkDown(t testing.TB, path, name string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	for levels := 0; ; levels++ {
		next, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT {
			check(t, unix.Faccessat(fd, "end", unix.F_OK, 0))
			check(t, unix.Close(fd))
			return levels
		}
		check(t, err)
		check(t, unix.Close(fd))
		fd = next
	}
}

// large are limits that no test here meets.
var large = scratch.Options{MaxBytes: math.MaxInt64, MaxFiles: math.MaxInt64}

// names lists everything below top, sorted; a directory ends in a slash and a link in "@".
func names(t testing.TB, top string) []string {
	t.Helper()
	var list []string
	check(t, filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == top {
			return err
		}
		rel, err := filepath.Rel(top, p)
		switch {
		case d.IsDir():
			rel += "/"
		case d.Type() == fs.ModeSymlink:
			rel += "@"
		}
		list = append(list, rel)
		return err
	}))
	slices.Sort(list)
	return list
}

func stat(t testing.TB, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	check(t, unix.Lstat(path, &st))
	return st
}

func openDescriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	return len(list)
}

// within fails the test if call has not returned after d: nothing here may block.
func within(t testing.TB, d time.Duration, call func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		t.Fatalf("still running after %v", d)
		return nil
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
