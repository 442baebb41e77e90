// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// ordinaryID is the uid and gid of a caller without any right.
const ordinaryID = 65534

// childCase is a case that runs as a whole in a child, because the child is somebody else or sees other mounts.
type childCase struct {
	Case
	root bool // in a mount namespace of its own, as root; else as an ordinary user
}

func childCases() []childCase {
	return append([]childCase{
		{newCase("C9", "unreadable", 0, "what cannot be read is left out, and the next restore deletes it", unreadable),
			false},
	}, mountCases()...)
}

func rootCases(t *testing.T) (all []Case) {
	for _, c := range childCases() {
		if c.root {
			all = append(all, c.inChild(starter{t.Name()}))
		}
	}
	return all
}

// inChild returns the case that starts a child for it.
func (c childCase) inChild(st starter) Case {
	inner := c.Case
	inner.Check = func(_ context.Context, _ Open, dir string) error {
		attr := &syscall.SysProcAttr{}
		switch root := os.Getuid() == 0; {
		case c.root:
			attr.Unshareflags = unix.CLONE_NEWNS
		case root:
			// A directory of the test may lie below one that only root can enter.
			own, err := os.MkdirTemp("", "rollbacktest-")
			if err != nil {
				return inconclusive(c.ID, err)
			}
			defer func() { _ = removeAll(own) }()
			if err := errors.Join(os.Chmod(own, 0o755), os.Chown(own, ordinaryID, ordinaryID)); err != nil {
				return inconclusive(c.ID, err)
			}
			dir = own
			attr.Credential = &syscall.Credential{Uid: ordinaryID, Gid: ordinaryID}
		}
		w, err := st.start(job{Kind: "case", Case: c.ID, Tree: dir}, attr)
		if err != nil {
			return inconclusive(c.ID, err)
		}
		err = w.wait()
		switch w.cmd.ProcessState.ExitCode() {
		case 0:
			return nil
		case exitBreach:
			return &Breach{Case: c.ID, Detail: "in a child: " + err.Error()}
		}
		return inconclusive(c.ID, err)
	}
	return inner
}

func unreadable(s *scene) {
	s.must(os.Setenv("HOME", filepath.Dir(s.dir))) // of the child alone: the caller's may be one that it cannot enter
	s.file("f", "f").file("d/x", "x")
	sub := s.subject()
	want, c := s.look(), s.checkpoint(sub)
	for name, change := range map[string]func(mode uint32){
		"d/x": func(mode uint32) { s.chmod("d/x", mode&0o644) },
		"d":   func(mode uint32) { s.chmod("d", mode) },
	} {
		change(0)
		s.must(s.err)
		_, err := sub.Checkpoint(s.ctx, s.tree, rollback.Meta{})
		s.want(err != nil, "a checkpoint of a tree with %s unreadable succeeds", name)
		s.want(strings.Contains(err.Error(), name), "the error does not name %s: %v", name, err)
		change(0o755)
	}
	s.chmod("d/x", 0o644)
	if l, ok := sub.(Lister); ok {
		n := 0
		for _, err := range l.All(s.ctx) {
			s.want(err == nil, "All: %v", err)
			n++
		}
		s.want(n == 1, "there are %d checkpoints, want 1", n)
	}
	s.file("d/secret", "s").chmod("d/secret", 0)
	s.must(s.err)
	_, err := sub.Restore(s.ctx, c.ID, s.tree)
	s.want(err != nil, "a restore over an unreadable file succeeds without saving it")
	_, err = os.Lstat(s.path("d/secret"))
	s.want(err == nil, "the unreadable file is gone: %v", err)
	s.remove("d/secret").chmod("d", 0o755)
	s.restore(sub, c.ID)
	s.same("the tree afterwards", want, s.look())
}
