// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// mountCases take place in a mount namespace of a child: what they mount is gone with it.
func mountCases() []childCase {
	return []childCase{
		{newCase("C10", "mounts", 0, "another file system is captured, or emptied by a restore", mounts), true},
		{newCase("C7r", "devices", 0, "a device is opened or removed", devices), true},
		{newCase("O1", "owners", 0, "owners do not come back though they were asked for", owners), true},
		{newCase("X5r", "full-store", 0, "a full disk spoils the store or the tree", fullStore), true},
		{newCase("X5s", "full-tree", 0, "a restore that does not fit leaves a mixed tree", fullTree), true},
	}
}

// private keeps mounts of this process from everybody else.
func (s *scene) private() {
	s.must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
}

func (s *scene) mount(source, target, kind string, flags uintptr, data string) (undo func()) {
	s.must(s.err, unix.Mount(source, target, kind, flags, data))
	return func() { _ = unix.Unmount(target, unix.MNT_DETACH) }
}

func mounts(s *scene) {
	s.private()
	s.file("f", "f").mkdir("tmpfs").mkdir("bind").mkdir("d/file").file("d/file/on", "under")
	s.must(os.WriteFile(s.outside("data"), []byte("outside"), 0o644))
	defer s.mount("tmpfs", s.path("tmpfs"), "tmpfs", 0, "size=1m")()
	defer s.mount(s.outside(""), s.path("bind"), "", unix.MS_BIND, "")() // the same device, and yet another mount
	defer s.mount(s.outside("data"), s.path("d/file/on"), "", unix.MS_BIND, "")()
	s.file("tmpfs/data", "mounted")
	sub := s.subject()
	c := s.checkpoint(sub)
	s.want(c.Files == 1, "the checkpoint holds %d files, want 1: nothing of what is mounted", c.Files)
	s.file("f", "bad").file("tmpfs/data", "mounted, changed")
	before := s.look()
	s.restore(sub, c.ID)
	after := s.look()
	s.holds("f", "f")
	for _, path := range []string{"tmpfs", "bind", "d/file/on"} {
		s.untouched("what is mounted at "+path, before.Under(path), after.Under(path))
	}
	// A directory that must go holds a mount: whatever the policy, the mount stays.
	s.mkdir("new/deep").file("new/x", "x")
	defer s.mount("tmpfs", s.path("new/deep"), "tmpfs", 0, "size=1m")()
	s.file("new/deep/data", "mounted")
	for _, policy := range []rollback.ForeignPolicy{rollback.ForeignKeep, rollback.ForeignQuarantine} {
		s.opt.Foreign = policy
		sub = s.again()
		_, err := sub.Restore(s.ctx, c.ID, s.tree)
		s.refused("restore over a new mount", err, rollback.ErrIncomplete)
		s.holds("new/deep/data", "mounted")
	}
}

func devices(s *scene) {
	s.file("f", "f")
	s.must(s.err, unix.Mknod(s.path("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	s.must(unix.Mknod(s.path("block"), unix.S_IFBLK|0o600, int(unix.Mkdev(7, 200))))
	sub := s.subject()
	_, err := sub.Checkpoint(s.ctx, s.tree, rollback.Meta{})
	s.refused("a tree with devices", err, rollback.ErrUnsupported)
	s.opt.Special = rollback.SpecialSkip
	sub = s.again()
	c := s.checkpoint(sub)
	s.want(len(c.Skipped) == 2, "skipped: %v, want two devices", c.Skipped)
	before := s.look()
	s.file("f", "bad")
	s.restore(sub, c.ID)
	s.holds("f", "f")
	for _, path := range []string{"null", "block"} {
		s.untouched("a device", before.Under(path), s.look().Under(path))
	}
}

func owners(s *scene) {
	s.opt.Owner = true
	s.file("f", "f").mkdir("d").link("l", "f")
	s.must(s.err, os.Lchown(s.path("f"), 1, 2), os.Lchown(s.path("d"), 3, 4), os.Lchown(s.path("l"), 5, 6))
	s.back(func() {
		s.must(os.Lchown(s.path("f"), 7, 7), os.Lchown(s.path("d"), 7, 7), os.Lchown(s.path("l"), 7, 7))
	})
	s.back(func() { s.remove("f", "d", "l") })
}

// fullStore puts the store on a file system of 1 MiB.
func fullStore(s *scene) {
	s.private()
	s.must(os.Mkdir(s.store(), 0o700))
	defer s.mount("tmpfs", s.store(), "tmpfs", 0, "size=1m,mode=0700")()
	s.opt.Codec = rollback.CodecNone
	s.file("f", strings.Repeat("x", 100_000))
	sub := s.subject()
	want, c := s.look(), s.checkpoint(sub)
	s.file("big", strings.Repeat("y", 2<<20)).file("f", "bad")
	before := s.look()
	_, err := sub.Checkpoint(s.ctx, s.tree, rollback.Meta{})
	s.noRoom("checkpoint into a full store", err)
	_, err = sub.Restore(s.ctx, c.ID, s.tree)
	s.noRoom("restore whose safety checkpoint does not fit", err)
	s.untouched("the tree after it", before, s.look())
	s.remove("big")
	sub = s.again()
	s.restore(sub, c.ID)
	s.same("the tree once there is room", want, s.look())
	if v, ok := sub.(Verifier); ok {
		err := v.Verify(s.ctx, rollback.ID{})
		s.want(err == nil, "verify of a store that was full: %v", err)
	}
}

// noRoom demands the typed error.
func (s *scene) noRoom(what string, err error) { s.refused(what, err, rollback.ErrNoSpace) }

// fullTree puts the tree on a file system of 1 MiB.
func fullTree(s *scene) {
	s.private()
	undo := s.mount("tmpfs", s.tree, "tmpfs", 0, "size=1m,mode=0755")
	defer undo()
	s.file("f", strings.Repeat("x", 700_000)).file("d/g", strings.Repeat("z", 100_000))
	sub := s.subject()
	want, c := s.look(), s.checkpoint(sub)
	s.file("f", strings.Repeat("y", 700_000)).file("d/h", strings.Repeat("h", 60_000))
	before := s.look()
	_, err := sub.Restore(s.ctx, c.ID, s.tree)
	s.noRoom("restore that does not fit", err)
	s.untouched("the tree after it", before.Without("."), s.look().Without("."))
	s.want(!hasStaging(s.look()), "the restore leaves its staging")
	s.file("f", "small")
	s.restore(sub, c.ID)
	s.same("the tree once there is room", want, s.look())
}
