// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/testenv"
)

// treeAndStore makes a directory with a small tree and a store beside it.
func treeAndStore(t *testing.T, o *Options) (base, tree string, s *Store) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	tree = base + "/tree"
	check(t, os.MkdirAll(tree+"/sub/deep", 0o755))
	check(t, os.WriteFile(tree+"/f", []byte("content"), 0o644))
	if o == nil {
		o = &Options{Sync: SyncProcess}
	}
	s, err = Open(base+"/store", o)
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	return base, tree, s
}

// refusedTarget demands a *TargetError that names a path and a reason, for every call that opens a tree.
func refusedTarget(t *testing.T, s *Store, path string) {
	t.Helper()
	_, err := s.Checkpoint(t.Context(), path, Meta{})
	_, digestErr := s.Digest(t.Context(), path)
	for what, err := range map[string]error{"checkpoint": err, "digest": digestErr} {
		target, ok := errors.AsType[*TargetError](err)
		if !ok || !errors.Is(err, ErrTarget) || target.Path == "" && path != "" || target.Reason == "" {
			t.Errorf("%s of %q: %v", what, path, err)
		}
	}
}

// TestRefusedDirectories changes the working directory and $HOME, so it runs alone.
func TestRefusedDirectories(t *testing.T) {
	base, tree, s := treeAndStore(t, nil)
	home := base + "/home of mine"
	for _, dir := range []string{home, tree + "/.git/hooks", tree + "/sub/.GIT", base + "/store/tmp/x"} {
		check(t, os.MkdirAll(dir, 0o755))
	}
	check(t, os.Symlink("tree", base+"/link"))
	check(t, os.Symlink("/", base+"/top"))
	t.Setenv("HOME", home)
	exe, err := os.Readlink("/proc/self/exe")
	check(t, err)
	refused := []string{
		"/", "//", "/.", "/usr", "/usr/", "/etc/../usr", "/usr/bin/..", "/bin", "/lib", "/proc", "/proc/self/fd", "/sys",
		"/dev", "/tmp", "/var/tmp", "/dev/shm", "/home", "/root", os.TempDir(), filepath.Dir(exe),
		home, home + "/", home + "/../home of mine", base, base + "/tree/..", base + "/store", base + "/store/tmp/x",
		tree + "/.git", tree + "/.git/hooks", tree + "/sub/.GIT", base + "/link", base + "/link/", base + "/link/sub",
		base + "/link/../tree",
		base + "/top", base + "/top/etc", tree + "/f", "", tree + "\x00",
	}
	for _, path := range refused {
		if _, err := os.Stat(path); err == nil || path == "" || strings.Contains(path, "\x00") {
			refusedTarget(t, s, path)
		}
	}
	t.Chdir("/")
	for _, path := range []string{"usr", "..", ".", strings.TrimPrefix(base, "/"), "proc/self/cwd"} {
		refusedTarget(t, s, path)
	}
	t.Chdir(tree + "/sub/deep")
	for _, path := range []string{".", "..", "../..", tree, tree + "/sub", tree + "/sub/deep"} {
		refusedTarget(t, s, path)
	}
	t.Chdir(base)
	if _, err := s.Checkpoint(t.Context(), "tree/./sub/..", Meta{}); err != nil {
		t.Errorf("a relative path to a tree: %v", err)
	}
	t.Setenv("PWD", base+"/link") // a lie
	if _, err := s.Checkpoint(t.Context(), "tree", Meta{}); err != nil {
		t.Errorf("with a false PWD: %v", err)
	}
	refusedTarget(t, s, tree+"/sub") // in a registered tree
	if keys, err := s.trees(); err != nil || len(keys) != 1 {
		t.Errorf("refused directories were registered: %v, %v", keys, err)
	}
}

func TestOtherUsersDirectory(t *testing.T) {
	testenv.Need(t, "unprivileged")
	t.Parallel()
	_, _, s := treeAndStore(t, nil)
	for _, dir := range []string{"/usr/share", "/etc/ssl", "/usr/lib"} {
		if _, err := os.Stat(dir); err == nil {
			refusedTarget(t, s, dir)
		}
	}
}

// TestBoundDirectory: another name for a refused directory does not make it a tree.
func TestBoundDirectory(t *testing.T) {
	testenv.Need(t, "tmpfs-mount")
	base, _, s := treeAndStore(t, nil)
	for name, source := range map[string]string{"usr": "/usr", "store": base + "/store"} {
		dir := base + "/bound-" + name
		check(t, os.Mkdir(dir, 0o755))
		check(t, unix.Mount(source, dir, "", unix.MS_BIND, ""))
		t.Cleanup(func() { check(t, unix.Unmount(dir, unix.MNT_DETACH)) })
		refusedTarget(t, s, dir)
	}
}

func TestStoreAndTree(t *testing.T) {
	t.Parallel()
	base, tree, s := treeAndStore(t, nil)
	inside, err := Open(tree+"/sub/store", &Options{Sync: SyncProcess})
	check(t, err)
	refusedTarget(t, inside, tree)
	refusedTarget(t, s, tree+"/sub/store") // another store
	refusedTarget(t, s, tree+"/sub/store/packs")
	check(t, inside.Close())
	check(t, os.RemoveAll(tree+"/sub/store"))
	_, err = s.Checkpoint(t.Context(), tree, Meta{})
	check(t, err)
	// A store that was moved into its own tree.
	check(t, os.Rename(base+"/store", tree+"/store"))
	if _, err := Open(tree+"/store", &Options{Sync: SyncProcess}); !errors.Is(err, ErrTarget) {
		t.Errorf("a store in its tree: %v", err)
	}
	refusedTarget(t, s, tree)
	check(t, os.Rename(tree+"/store", base+"/store"))
}

// TestIdentityOfATree: a tree is where it is and what it is.
func TestIdentityOfATree(t *testing.T) {
	t.Parallel()
	base, tree, s := treeAndStore(t, nil)
	c, err := s.Checkpoint(t.Context(), tree, Meta{})
	check(t, err)
	check(t, os.Rename(tree, base+"/moved"))
	check(t, os.Mkdir(tree, 0o755))
	check(t, os.WriteFile(tree+"/f", []byte("content"), 0o644))
	for _, path := range []string{tree, base + "/moved"} {
		if _, err := s.Plan(t.Context(), c.ID, path); !errors.Is(err, ErrTarget) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := s.Checkpoint(t.Context(), tree, Meta{}); err != nil {
		t.Errorf("a new tree at an old place: %v", err)
	}
	if _, err := s.Plan(t.Context(), c.ID, tree); !errors.Is(err, ErrTarget) {
		t.Errorf("the checkpoint of another tree at this path: %v", err)
	}
	if keys, err := s.trees(); err != nil || len(keys) != 2 {
		t.Errorf("%v, %v", keys, err)
	}
}

// TestInodeUsedAgain: file systems give the number of a removed directory to the next one.
func TestInodeUsedAgain(t *testing.T) {
	t.Parallel()
	a := registration{Path: []byte("/tree"), Inode: 7, Born: 1}
	b, c, d := a, a, a
	b.Born, c.Inode, d.Path = 2, 8, []byte("/tree2")
	keys := map[string]bool{a.key(): true, b.key(): true, c.key(): true, d.key(): true}
	if len(keys) != 4 {
		t.Error("two trees have one key")
	}
}

func TestDamagedMarker(t *testing.T) {
	t.Parallel()
	base, tree, s := treeAndStore(t, nil)
	_, err := s.Checkpoint(t.Context(), tree, Meta{})
	check(t, err)
	keys, err := s.trees()
	check(t, err)
	name := base + "/store/trees/" + keys[0] + "/root"
	good, err := os.ReadFile(name)
	check(t, err)
	other := strings.Replace(string(good), `"inode":`, `"inode":1`, 1)
	for _, bad := range []string{"", "{}", string(good[:len(good)-1]), other} {
		check(t, os.WriteFile(name, []byte(bad), 0o600))
		if _, err := s.Checkpoint(t.Context(), tree, Meta{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestTreeLock: two stores on one tree exclude each other, and waiting ends with the context.
func TestTreeLock(t *testing.T) {
	t.Parallel()
	base, tree, s := treeAndStore(t, nil)
	other, err := Open(base+"/other", &Options{Sync: SyncProcess})
	check(t, err)
	defer func() { check(t, other.Close()) }()
	held, err := s.openTarget(t.Context(), tree, forCheckpoint)
	check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := other.Checkpoint(ctx, tree, Meta{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the tree is locked: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := other.Checkpoint(t.Context(), tree, Meta{})
		done <- err
	}()
	held.close()
	check(t, <-done)
}

// TestMovedWhileWaiting: the directory that a path leads to when the lock is there is the one that counts.
func TestMovedWhileWaiting(t *testing.T) {
	t.Parallel()
	base, tree, s := treeAndStore(t, nil)
	held, err := s.openTarget(t.Context(), tree, forCheckpoint)
	check(t, err)
	done := make(chan error)
	go func() {
		_, err := s.Checkpoint(t.Context(), tree, Meta{})
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	check(t, os.Rename(tree, base+"/moved"))
	check(t, os.Mkdir(tree, 0o755))
	held.close()
	if err := <-done; err != nil && !errors.Is(err, ErrTarget) {
		t.Errorf("got %v", err)
	}
}

func TestPendingRestore(t *testing.T) {
	t.Parallel()
	_, tree, s := treeAndStore(t, nil)
	c, err := s.Checkpoint(t.Context(), tree, Meta{})
	check(t, err)
	keys, err := s.trees()
	check(t, err)
	check(t, s.writeFile(journalPath(keys[0]), []byte("x")))
	_, err = s.Checkpoint(t.Context(), tree, Meta{})
	_, digestErr := s.Digest(t.Context(), tree)
	_, planErr := s.Plan(t.Context(), c.ID, tree)
	for _, err := range []error{err, digestErr, planErr} {
		if !errors.Is(err, ErrPending) {
			t.Errorf("got %v", err)
		}
	}
	check(t, s.dir.Remove(journalPath(keys[0])))
	// And one that another store has begun.
	check(t, os.Mkdir(tree+"/"+stagingName(stagingTag("another", "tree"), &fakeManifestRoot), 0o700))
	if _, err := s.Checkpoint(t.Context(), tree, Meta{}); !errors.Is(err, ErrPending) {
		t.Errorf("got %v", err)
	}
}

func TestByComponent(t *testing.T) {
	t.Parallel()
	base, tree, _ := treeAndStore(t, nil)
	check(t, os.Symlink("tree", base+"/link"))
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	for path, want := range map[string]bool{
		tree: true, "/": true, tree + "/sub/deep": true, base + "/link": false, base + "/link/sub": false,
		tree + "/sub//deep/../deep/.": true, base + "/link/../tree": false,
	} {
		fd, err := openByComponent(path, flags)
		if (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			unix.Close(fd)
		}
	}
}
