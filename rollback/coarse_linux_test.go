// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/testenv"
)

// TestCoarseFileSystem: a tree on a file system that cannot keep what the checkpoint has is refused before anything is
// committed, since such a restore could never end.
func TestCoarseFileSystem(t *testing.T) {
	testenv.Need(t, "loop-mount")
	t.Parallel()
	whole := time.Unix(1_000_000_000, 0)
	for name, fill := range map[string]func(b *bench){
		"file": func(b *bench) { b.write("f", "times with nanoseconds") },
		"link": func(b *bench) { check(b.t, os.Symlink("f", b.path("l"))) },
		"dir": func(b *bench) {
			check(b.t, os.Mkdir(b.path("d"), 0o755))
			check(b.t, os.Chtimes(b.path("d"), whole, whole.Add(1)))
		},
		"root": func(b *bench) { check(b.t, os.Chtimes(b.tree, whole, whole.Add(1))) },
		"whole": func(b *bench) {
			b.write("d/f", "times without")
			for _, name := range []string{"d/f", "d", "."} {
				check(b.t, os.Chtimes(b.path(name), whole, whole))
			}
		},
	} {
		top := t.TempDir()
		image, mnt := filepath.Join(top, "image"), filepath.Join(top, "mnt")
		check(t, os.WriteFile(image, nil, 0o600))
		check(t, os.Truncate(image, 4<<20))
		check(t, os.Mkdir(mnt, 0o755))
		run := func(command string, args ...string) {
			if out, err := exec.CommandContext(t.Context(), command, args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", command, err, out)
			}
		}
		run("mkfs.ext4", "-q", "-I", "128", "-F", image) // inodes of this size have room for seconds only
		run("mount", "-o", "loop", image, mnt)
		t.Cleanup(func() { check(t, unix.Unmount(mnt, unix.MNT_DETACH)) })
		b := &bench{t: t, store: filepath.Join(top, "store"), tree: filepath.Join(top, "tree")}
		check(t, os.Mkdir(b.tree, 0o755))
		check(t, os.Chtimes(b.tree, whole, whole))
		fill(b)
		if name != "root" {
			check(t, os.Chtimes(b.tree, whole, whole))
		}
		root := filepath.Join(mnt, "root")
		check(t, os.Mkdir(root, 0o755))
		b.open(Options{Sync: SyncProcess, Roots: []string{root}})
		var err error
		b.old, err = b.s.Checkpoint(t.Context(), b.tree, Meta{})
		check(t, err)
		r, err := b.s.Restore(t.Context(), b.old.ID, root)
		if name == "whole" {
			if err != nil || r.Digest != b.old.Digest {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
			continue
		}
		if !errors.Is(err, ErrUnsupported) || isPending(err) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}
