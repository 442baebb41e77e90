// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/testenv"
)

// TestOverlayOfTwoFileSystems: there the files of each layer have a device of their own, which is not the mount's. They
// are part of the tree all the same, and inode numbers of two layers mean nothing to each other.
func TestOverlayOfTwoFileSystems(t *testing.T) {
	testenv.Need(t, "tmpfs-mount")
	t.Parallel()
	top := t.TempDir()
	p := func(name string) string { return filepath.Join(top, name) }
	mount := func(dir, kind, data string) {
		check(t, os.Mkdir(p(dir), 0o755))
		check(t, unix.Mount(kind, p(dir), kind, 0, data))
		t.Cleanup(func() { check(t, unix.Unmount(p(dir), unix.MNT_DETACH)) })
	}
	mount("lower", "tmpfs", "size=8m")
	mount("upper", "tmpfs", "size=8m")
	for _, dir := range []string{"lower/tree/dir", "upper/data", "upper/work"} {
		check(t, os.MkdirAll(p(dir), 0o755))
	}
	for name, text := range map[string]string{"kept": "kept", "edited": "old", "dir/gone": "gone"} {
		check(t, os.WriteFile(p("lower/tree/"+name), []byte(text), 0o644))
	}
	mount("mnt", "overlay", "xino=off,lowerdir="+p("lower")+",upperdir="+p("upper/data")+",workdir="+p("upper/work"))
	b := &bench{t: t, store: p("store"), tree: p("mnt/tree")}
	b.write("new", "in the upper layer")
	b.open(scratchy)
	var err error
	b.old, err = b.s.Checkpoint(t.Context(), b.tree, Meta{})
	check(t, err)
	if b.old.Files != 4 || len(b.old.Skipped) > 0 {
		t.Fatalf("%d files, skipped: %v", b.old.Files, b.old.Skipped)
	}
	good := picture(t, b.tree)
	b.write("edited", "bad")
	b.write("new", "worse")
	check(t, os.RemoveAll(b.path("dir")))
	b.write("dir", "a file now")
	_, err = b.s.Restore(t.Context(), b.old.ID, b.tree)
	check(t, err)
	same(t, "restored", good, picture(t, b.tree))
	b.again()
}
