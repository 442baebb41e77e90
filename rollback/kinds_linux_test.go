// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/testenv"
)

// again takes a checkpoint of the tree as it is.
func (b *bench) again() map[string]string {
	b.t.Helper()
	var err error
	b.old, err = b.s.Checkpoint(b.t.Context(), b.tree, Meta{})
	check(b.t, err)
	return picture(b.t, b.tree)
}

func (b *bench) restore() *Restoration {
	b.t.Helper()
	r, err := b.s.Restore(b.t.Context(), b.old.ID, b.tree)
	check(b.t, err)
	return r
}

// TestHardLinks: a group whose first name is sound keeps its file, and only the lost names come back to it.
func TestHardLinks(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	good := picture(t, b.tree)
	inode := func() uint64 {
		var st unix.Stat_t
		check(t, unix.Lstat(b.path("src/trio-b"), &st))
		return st.Ino
	}
	before := inode()
	for name, damage := range map[string]func(){
		"last name lost":     func() { check(t, os.Remove(b.path("trio-a"))) },
		"last name replaced": func() { check(t, os.Remove(b.path("trio-a"))); b.write("trio-a", "three") },
		"a name more":        func() { check(t, os.Link(b.path("trio-a"), b.path("trio-d"))) },
		"two names of another": func() {
			check(t, os.Remove(b.path("trio-a")))
			check(t, os.Link(b.path("pair-a"), b.path("trio-a")))
		},
	} {
		damage()
		b.restore()
		same(t, name, good, picture(t, b.tree))
		if got := inode(); got != before {
			t.Errorf("%s: the first name has a new file", name)
			before = got
		}
	}
	check(t, os.Remove(b.path("src/trio-b")))
	b.write("src/trio-b", "not three")
	check(t, os.Chmod(b.path("pair-a"), 0o600))
	b.restore()
	same(t, "first name replaced, mode of a pair", good, picture(t, b.tree))
}

// TestLargeFiles: chunks and holes come back as they were.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	f, err := os.Create(b.path("large"))
	check(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("x"), 9<<20), 16<<20)
	check(t, err)
	check(t, f.Truncate(60<<20))
	check(t, f.Close())
	good := b.again()
	var st unix.Stat_t
	check(t, os.Truncate(b.path("large"), 5))
	b.restore()
	same(t, "restored", good, picture(t, b.tree))
	check(t, unix.Stat(b.path("large"), &st))
	if st.Blocks*512 > 20<<20 {
		t.Errorf("%d bytes of disk for 9 MiB of data", st.Blocks*512)
	}
}

// TestLongPaths: longer than the kernel takes in one piece.
func TestLongPaths(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	dir, err := os.OpenRoot(b.tree)
	check(t, err)
	name := strings.Repeat("d", 250)
	for range 20 {
		check(t, dir.Mkdir(name, 0o755))
		next, err := dir.OpenRoot(name)
		check(t, err)
		check(t, dir.Close())
		dir = next
	}
	defer func() { _ = dir.Close() }()
	check(t, dir.WriteFile("file", []byte("deep"), 0o644))
	b.old, err = b.s.Checkpoint(t.Context(), b.tree, Meta{})
	check(t, err)
	check(t, dir.WriteFile("file", []byte("bad"), 0o644))
	check(t, dir.WriteFile("more", []byte("bad"), 0o644))
	b.restore()
	if data, err := dir.ReadFile("file"); err != nil || string(data) != "deep" {
		t.Errorf("%q, %v", data, err)
	}
	if b.digest() != b.old.Digest {
		t.Error("another digest")
	}
}

// TestXattrsComeBack: in place where only they differ, with the file where it is rewritten.
func TestXattrsComeBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // ext4, XFS and Btrfs have user attributes, older tmpfs have not
	b := newBenchIn(t, dir, Options{Sync: SyncProcess, Xattrs: true})
	for _, name := range []string{"a", "src", "src/b"} {
		check(t, unix.Setxattr(b.path(name), "user.test", []byte("value of "+name), 0))
	}
	good := b.again()
	check(t, unix.Setxattr(b.path("a"), "user.test", []byte("other"), 0))
	check(t, unix.Setxattr(b.path("a"), "user.more", []byte("x"), 0))
	check(t, unix.Removexattr(b.path("src"), "user.test"))
	b.write("src/b", "bad")
	check(t, unix.Removexattr(b.path("src/b"), "user.test"))
	b.restore()
	same(t, "restored", good, picture(t, b.tree))
	for _, name := range []string{"a", "src", "src/b"} {
		buf := make([]byte, 100)
		n, err := unix.Getxattr(b.path(name), "user.test", buf)
		if err != nil || string(buf[:n]) != "value of "+name {
			t.Errorf("%s: %q, %v", name, buf[:max(n, 0)], err)
		}
	}
	if _, err := unix.Getxattr(b.path("a"), "user.more", nil); err != unix.ENODATA {
		t.Errorf("an attribute too many: %v", err)
	}
}

// TestOwners: with owners they come back; without them a rewritten file stays its user's, and set-id bits survive.
func TestOwners(t *testing.T) {
	testenv.Need(t, "root")
	t.Parallel()
	owner := func(path string) [2]uint32 {
		var st unix.Stat_t
		check(t, unix.Lstat(path, &st))
		return [2]uint32{st.Uid, st.Gid}
	}
	for _, with := range []bool{true, false} {
		b := newBench(t, Options{Sync: SyncProcess, Owner: with, Privileged: true})
		check(t, os.Lchown(b.path("link"), 1234, 1235))
		check(t, os.Chown(b.path("a"), 1234, 1235))
		check(t, os.Chown(b.path("src"), 1236, 1237))
		check(t, unix.Chmod(b.path("a"), 0o6755))
		good := b.again()
		b.write("a", "bad")
		check(t, os.Remove(b.path("src/b")))
		check(t, os.Remove(b.path("link")))
		check(t, os.Symlink("x", b.path("link")))
		check(t, os.Lchown(b.path("link"), 77, 78))
		b.restore()
		same(t, "restored", good, picture(t, b.tree))
		got := [][2]uint32{owner(b.path("a")), owner(b.path("src/b")), owner(b.path("link"))}
		want := [][2]uint32{{1234, 1235}, {0, 0}, {1234, 1235}}
		if !with { // whom the replaced one belonged to, or the directory
			want = [][2]uint32{{1234, 1235}, {1236, 1237}, {77, 78}}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("owners captured: %t: (-want +got)\n%s", with, diff)
		}
	}
}

// TestRestoreElsewhere: into an empty directory that the host named, and into no other.
func TestRestoreElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	good := picture(t, b.tree)
	other := filepath.Join(filepath.Dir(b.tree), "other")
	check(t, os.Mkdir(other, 0o755))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(other, "closed"), 0o755) })
	if r, err := b.s.Restore(t.Context(), b.old.ID, other); !errors.Is(err, ErrTarget) || r != nil {
		t.Errorf("into a directory that nobody named: %+v, %v", r, err)
	}
	check(t, b.s.Close())
	b.open(Options{Sync: SyncProcess, Roots: []string{other}})
	r, err := b.s.Restore(t.Context(), b.old.ID, other)
	check(t, err)
	if r.Digest != b.old.Digest {
		t.Errorf("digest %x, want %x", r.Digest, b.old.Digest)
	}
	for name := range good {
		if strings.Contains(name, ".git") || strings.Contains(name, "__pycache__") {
			delete(good, name)
		}
	}
	same(t, "elsewhere", good, picture(t, other))
}

// TestRestoreNothing: an identifier of no checkpoint restores none.
func TestRestoreNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	spoil(t, b.tree)
	bad := picture(t, b.tree)
	for _, id := range []ID{{}, {1}} {
		if r, err := b.s.Restore(t.Context(), id, b.tree); !errors.Is(err, ErrNotFound) || r != nil {
			t.Errorf("%s: %+v, %v", id, r, err)
		}
		if r, err := b.s.Plan(t.Context(), id, b.tree); !errors.Is(err, ErrNotFound) || r != nil {
			t.Errorf("%s: %+v, %v", id, r, err)
		}
	}
	same(t, "nothing", bad, picture(t, b.tree))
}

// TestDamagedObjects: a byte of a pack that is not what was written leaves the tree as it is.
func TestDamagedObjects(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{Sync: SyncProcess, Codec: CodecNone})
	packs, err := filepath.Glob(filepath.Join(b.store, packsDir, "*"))
	check(t, err)
	data, err := os.ReadFile(packs[0])
	check(t, err)
	at := bytes.Index(data, []byte("gamma gamma"))
	if len(packs) != 1 || at < 0 {
		t.Fatalf("%d packs, byte %d", len(packs), at)
	}
	check(t, os.Chmod(packs[0], 0o600))
	data[at] ^= 1
	check(t, os.WriteFile(packs[0], data, 0o600))
	check(t, os.Remove(b.path("src/deep/er/c")))
	b.write("a", "bad")
	bad := picture(t, b.tree)
	r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
	var damage *CorruptError
	if !errors.As(err, &damage) || damage.ID != b.old.ID || r != nil || isPending(err) {
		t.Errorf("%+v, %v", r, err)
	}
	same(t, "damaged", bad, picture(t, b.tree))
}

// TestUnreadable: what the caller cannot read blocks a restore, or is moved away where that is the policy.
func TestUnreadable(t *testing.T) {
	testenv.Need(t, "unprivileged")
	t.Parallel()
	for _, policy := range []ForeignPolicy{ForeignKeep, ForeignQuarantine} {
		b := newBench(t, Options{Sync: SyncProcess, Foreign: policy})
		good := picture(t, b.tree)
		b.write("src/secret", "secret")
		check(t, os.Chmod(b.path("src/secret"), 0))
		check(t, os.Chmod(b.path("a"), 0))
		r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
		if policy == ForeignKeep {
			if !errors.Is(err, fs.ErrPermission) || isPending(err) || r != nil {
				t.Errorf("%+v, %v", r, err)
			}
			continue
		}
		check(t, err)
		same(t, "restored", good, picture(t, b.tree))
		if len(r.Quarantined) != 2 || r.Quarantined[0].Path != "a" || r.Quarantined[1].Path != "src/secret" {
			t.Errorf("%+v", r.Quarantined)
		}
	}
}
