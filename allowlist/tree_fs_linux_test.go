// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/internal/testenv"
	"golang.org/x/sys/unix"
)

// mountTmpfs mounts a file system of the given size in bytes and files.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	testenv.Need(t, "tmpfs-mount")
	dir := t.TempDir()
	must(t, unix.Mount("allowlist-test", dir, "tmpfs", 0, options))
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	must(t, os.Chmod(dir, 0o755))
	return dir
}

// exercise applies and reverts a set of every operation.
func exercise(t *testing.T, dir string, o *allowlist.TreeOptions) {
	t.Helper()
	p := loadPolicy(t, treePolicyText)
	o.Sync, o.Full = true, true
	tree := openTree(t, dir, o)
	before := readTree(t, dir)
	m, err := p.Seal(tree)
	must(t, err)
	edits := []allowlist.Edit{
		modify("src/a", "a\n", "A\n"), remove("src/c", "c\n"), create("src/new", "n\n"), create("src/d/e/f", "f\n"),
	}
	r, err := applyEdits(t, p, tree, edits...)
	must(t, err)
	want := readTree(t, dir)
	for _, e := range edits {
		expectEdit(want, e)
	}
	wantTree(t, dir, want)
	must(t, m.Verify(tree))
	must(t, r.Revert(t.Context()))
	wantTree(t, dir, before)
}

var exerciseFiles = map[string]string{"src/a": "a\n", "src/c": "c\n", "src/d/k": "k\n", "configs/s": "s\n"}

func putAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		putFile(t, dir, name, content, 0o644)
	}
}

func TestTmpfs(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "tmpfs-mount")
	eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
		dir := mountTmpfs(t, "size=4m")
		putAll(t, dir, exerciseFiles)
		exercise(t, dir, o)
	})
}

// TestOverlayfs edits files of the lower and of the upper layer.
func TestOverlayfs(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "tmpfs-mount")
	eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
		base := mountTmpfs(t, "size=4m")
		at := func(name string) string { return filepath.Join(base, name) }
		for _, name := range []string{"lower", "upper", "work", "merged"} {
			must(t, os.Mkdir(at(name), 0o755))
		}
		putAll(t, at("lower"), exerciseFiles)
		must(t, unix.Mount("overlay", at("merged"), "overlay", 0,
			"lowerdir="+at("lower")+",upperdir="+at("upper")+",workdir="+at("work")))
		t.Cleanup(func() {
			if err := unix.Unmount(at("merged"), unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		putFile(t, at("merged"), "src/c", "c\n", 0o644) // now of the upper layer
		exercise(t, at("merged"), o)
	})
}

// TestMountPoint: another file system inside the tree is not walked into.
func TestMountPoint(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "tmpfs-mount")
	eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
		dir := newFiles(t, map[string]string{"src/a": "a\n", "src/m/x": "x\n"})
		must(t, unix.Mount("allowlist-test", filepath.Join(dir, "src/m"), "tmpfs", 0, "size=1m"))
		t.Cleanup(func() { must(t, unix.Unmount(filepath.Join(dir, "src/m"), unix.MNT_DETACH)) })
		_, err := loadPolicy(t, treePolicyText).Plan(openTree(t, dir, o), []allowlist.Edit{create("src/m/new", "n\n")})
		if !errors.Is(err, allowlist.ErrFileType) {
			t.Errorf("got %v, want file_type", err)
		}
	})
}

// TestDiskFull fills a small file system: the error is the system's, and the tree is as it was.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "tmpfs-mount")
	eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
		dir := mountTmpfs(t, "size=256k")
		putAll(t, dir, exerciseFiles)
		before := readTree(t, dir)
		_, err := applyEdits(t, loadPolicy(t, treePolicyText), openTree(t, dir, o),
			modify("src/a", "a\n", "A\n"), create("src/x/y", "y\n"), create("src/large", strings.Repeat("x", 1<<19)))
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("got %v, want ENOSPC", err)
		}
		wantTree(t, dir, before)
	})
}

// TestReadOnly: a file system, and for an ordinary user a directory, that cannot be written.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
		dir := newFiles(t, exerciseFiles)
		want := fs.ErrPermission
		if os.Getuid() == 0 {
			testenv.Need(t, "tmpfs-mount")
			dir = mountTmpfs(t, "size=1m")
			putAll(t, dir, exerciseFiles)
			must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
			want = unix.EROFS
		} else {
			must(t, os.Chmod(filepath.Join(dir, "src"), 0o555))
			t.Cleanup(func() { must(t, os.Chmod(filepath.Join(dir, "src"), 0o755)) })
		}
		before := readTree(t, dir)
		_, err := applyEdits(t, loadPolicy(t, treePolicyText), openTree(t, dir, o), create("src/d/x", "x\n"), modify("src/a", "a\n", "A\n"))
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		wantTree(t, dir, before)
	})
}

// TestOpenat2Refused: where a system-call filter refuses openat2, the portable walk takes over.
func TestOpenat2Refused(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "seccomp")
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
		dir := newFiles(t, exerciseFiles)
		done := make(chan error)
		var portable bool
		go func() { // the filter holds for this thread, which ends with the goroutine: it is never unlocked
			runtime.LockOSThread()
			if err := refuseOpenat2(errno); err != nil {
				done <- err
				return
			}
			tree, err := allowlist.OpenTree(dir, nil)
			if err == nil {
				portable = allowlist.IsPortable(tree)
				err = tree.Close()
			}
			done <- err
		}()
		must(t, <-done)
		if !portable {
			t.Errorf("%v: not the portable walk", errno)
		}
	}
}

// refuseOpenat2 installs a filter of four instructions on this thread.
func refuseOpenat2(errno unix.Errno) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: unix.SYS_OPENAT2},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}
