// SPDX-License-Identifier: Apache-2.0

package fsys

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func openDir(t *testing.T, dir string) int {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// refused is an opener as on a host whose filter denies openat2.
func refused(int, string, uint64, uint64) (int, error) { return -1, unix.ENOSYS }

func TestOpenBeneathFollowsNothing(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "root")
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "a/b/file"), []byte("x"), 0o644))
	must(t, os.WriteFile(filepath.Join(top, "canary"), nil, 0o644))
	must(t, os.Symlink("a", filepath.Join(dir, "link")))
	must(t, os.Symlink("b/file", filepath.Join(dir, "a/last")))
	must(t, os.Symlink(top, filepath.Join(dir, "out")))
	root := openDir(t, dir)
	for _, c := range []struct {
		path  string
		flags uint64
		want  error
	}{
		{".", unix.O_PATH | unix.O_DIRECTORY, nil},
		{"a/b/file", unix.O_RDONLY, nil},
		{"a/last", unix.O_RDONLY, unix.ELOOP},
		{"a/last", unix.O_PATH, unix.ELOOP},
		{"a/last", unix.O_PATH | unix.O_NOFOLLOW, nil},
		{"link/b/file", unix.O_RDONLY, unix.ELOOP},
		{"out/canary", unix.O_RDONLY, unix.ELOOP},
		{"../canary", unix.O_RDONLY, unix.EXDEV},
		{"a/../../canary", unix.O_RDONLY, unix.EXDEV},
		{"/etc/passwd", unix.O_RDONLY, unix.EXDEV},
		{"a/none/file", unix.O_RDONLY, unix.ENOENT},
		{"a/b/file/none", unix.O_RDONLY, unix.ENOTDIR},
	} {
		for name, open := range map[string]opener{"openat2": Openat2, "steps": refused} {
			fd, err := openBeneath(root, c.path, c.flags, 0, open)
			if err == nil {
				unix.Close(fd)
			}
			// Without openat2 a link in the middle is no directory.
			if err != c.want && !(name == "steps" && c.want == unix.ELOOP && err == unix.ENOTDIR) {
				t.Errorf("%s: open %q with %#x: %v, want %v", name, c.path, c.flags, err, c.want)
			}
		}
	}
}

func TestOpenBeneathStaysOnItsFileSystem(t *testing.T) {
	t.Parallel()
	root := openDir(t, "/")
	for name, open := range map[string]opener{"openat2": Openat2, "steps": refused} {
		if fd, err := openBeneath(root, "proc/self", unix.O_PATH, 0, open); err != unix.EXDEV {
			unix.Close(fd)
			t.Errorf("%s: a path into another file system: %v, want EXDEV", name, err)
		}
	}
}

func TestOpenBeneathTakesPathsOfAnyLength(t *testing.T) {
	t.Parallel()
	top := openDir(t, t.TempDir())
	name := strings.Repeat("n", 200)
	at, path := top, ""
	for range 40 {
		must(t, unix.Mkdirat(at, name, 0o755))
		next, err := Openat2(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		if at != top {
			unix.Close(at)
		}
		at, path = next, path+name+"/"
	}
	defer unix.Close(at)
	fd, err := OpenBeneath(at, "file", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	must(t, err)
	unix.Close(fd)
	fd, err = OpenBeneath(top, path+"file", unix.O_RDONLY, 0)
	must(t, err)
	defer unix.Close(fd)
	if _, err := OpenBeneath(top, strings.Repeat("x", 5000), unix.O_RDONLY, 0); err != unix.ENAMETOOLONG {
		t.Errorf("a name of 5,000 bytes: %v, want ENAMETOOLONG", err)
	}
}

func TestExchangeAndPlace(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	dir := openDir(t, path)
	must(t, os.WriteFile(filepath.Join(path, "a"), []byte("a"), 0o600))
	must(t, os.Mkdir(filepath.Join(path, "b"), 0o755))
	must(t, Exchange(dir, "a", dir, "b"))
	if st, err := Lstat(dir, "a"); err != nil || Kind(uint32(st.Mode)) != "directory" {
		t.Errorf("after the exchange a is a %s, %v", Kind(uint32(st.Mode)), err)
	}
	if err := Place(dir, "a", dir, "b"); err != unix.EEXIST {
		t.Errorf("placed on a name that is taken: %v, want EEXIST", err)
	}
	must(t, Place(dir, "b", dir, "c"))
	if _, err := Lstat(dir, "b"); err != unix.ENOENT {
		t.Errorf("the old name is still there: %v", err)
	}
	if err := Exchange(dir, "c", dir, "none"); err != unix.ENOENT {
		t.Errorf("exchange with nothing: %v, want ENOENT", err)
	}
}

// TestHandles: mode and time of whatever a handle holds, also if its mode forbids to open it.
func TestHandles(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	dir := openDir(t, path)
	must(t, os.WriteFile(filepath.Join(path, "file"), nil, 0))
	must(t, os.Symlink("none", filepath.Join(path, "link")))
	for _, name := range []string{"file", "link"} {
		fd, err := Openat2(dir, name, unix.O_PATH|unix.O_NOFOLLOW, 0)
		must(t, err)
		defer unix.Close(fd)
		must(t, SetTime(fd, -5, 7))
		must(t, ChownHandle(fd, os.Getuid(), os.Getgid()))
		if name == "file" {
			must(t, ChmodHandle(fd, 0o2471))
		}
		st, err := Fstat(fd)
		must(t, err)
		if st.Mtim.Sec != -5 || st.Mtim.Nsec != 7 {
			t.Errorf("%s: time %v", name, st.Mtim)
		}
		if name == "file" && st.Mode&0o7777 != 0o2471 {
			t.Errorf("mode %#o", st.Mode)
		}
	}
	if Folds(dir) {
		t.Error("an ordinary directory folds names")
	}
	if st, err := Statfs(dir); err != nil || st.Type == 0 {
		t.Errorf("Statfs: type %#x, %v", st.Type, err)
	}
	StartWriteout(dir)
	must(t, SyncFS(dir))
}

func TestRetry(t *testing.T) {
	t.Parallel()
	calls := 0
	err := Retry(func() error {
		if calls++; calls < 3 {
			return unix.EINTR
		}
		return unix.EIO
	})
	if err != unix.EIO || calls != 3 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if err := Retry(func() error { return unix.EAGAIN }); err != unix.EAGAIN {
		t.Errorf("an endless race: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
