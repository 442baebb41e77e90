// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Without openat2 the answers are the same, as long as nobody else is there.
func TestOpenAlone(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(top, "a/b/c"), 0o755))
	must(os.WriteFile(filepath.Join(top, "a/b/file"), []byte("x"), 0o600))
	must(os.Symlink("b", filepath.Join(top, "a/inner")))
	must(os.Symlink("b/file", filepath.Join(top, "a/link")))
	must(os.Symlink("/proc", filepath.Join(top, "a/proc")))
	must(os.Symlink("..", filepath.Join(top, "a/up")))
	must(os.Symlink("none", filepath.Join(top, "a/dangling")))
	must(unix.Mkfifo(filepath.Join(top, "a/fifo"), 0o600))
	dir, err := os.Open(top)
	must(err)
	defer dir.Close()
	root, err := os.Open("/")
	must(err)
	defer root.Close()
	for _, c := range []struct {
		dir  *os.File
		path string
	}{
		{dir, "."}, {dir, "a"}, {dir, "a/b"}, {dir, "a/b/c"}, {dir, "a/b/file"}, {dir, "a/none"}, {dir, "none/file"}, {dir, "a/fifo"},
		{dir, "a/inner"}, {dir, "a/inner/file"}, {dir, "a/link"}, {dir, "a/proc/self"}, {dir, "a/up/a"}, {dir, "a/dangling"},
		{dir, "a/b/file/x"}, {dir, "a/../a"}, {dir, ".."}, {root, "proc"}, {root, "proc/self"},
	} {
		for _, flags := range []uint64{openFile, openDir} {
			want, wantErr := open(int(c.dir.Fd()), c.path, flags)
			got, err := openAlone(int(c.dir.Fd()), c.path, flags)
			// A link where a directory is wanted is ENOTDIR for the one and ELOOP for the other; both are a refusal. "a/.." never
			// comes here: it is no path below the workspace.
			same := err == wantErr || wantErr == unix.ENOTDIR && err == unix.ELOOP || c.path == "a/../a" && err == unix.EXDEV
			if !same || (got < 0) != (err != nil) {
				t.Errorf("%s, flags %#x: %v, openat2 says %v", c.path, flags, err, wantErr)
			}
			if err == nil && wantErr == nil && !sameFile(t, want, got) {
				t.Errorf("%s: another file", c.path)
			}
			for _, fd := range []int{want, got} {
				if fd >= 0 {
					unix.Close(fd)
				}
			}
		}
	}
}

func sameFile(t *testing.T, a, b int) bool {
	t.Helper()
	var x, y unix.Stat_t
	if err := unix.Fstat(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fstat(b, &y); err != nil {
		t.Fatal(err)
	}
	return x.Dev == y.Dev && x.Ino == y.Ino
}
