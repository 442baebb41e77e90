// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"

	"github.com/evoseal/containment/rollback"
)

// limitCases are about what a checkpoint refuses or leaves out.
func limitCases() []Case {
	return []Case{
		newCase("C7", "special-refused", 0, "a FIFO hangs the walk or vanishes silently", specialRefused),
		newCase("C7b", "special-skipped", 0, "a skipped FIFO or socket is not listed, or a restore removes it",
			specialSkipped),
		newCase("C11", "limits", 0, "a limit skips something silently, or does not name it", limits),
		newCase("C13", "set-id", 0, "a set-user-ID program is captured without anybody having asked for it", setID),
	}
}

func specialRefused(s *scene) {
	s.file("a", "a").fifo("d-fifo")
	sub := s.subject()
	s.must(s.err)
	_, err := sub.Checkpoint(s.ctx, s.tree, rollback.Meta{})
	s.refused("a tree with a FIFO", err, rollback.ErrUnsupported)
	s.want(strings.Contains(err.Error(), "d-fifo"), "the error does not name the FIFO: %v", err)
}

func specialSkipped(s *scene) {
	s.opt.Special = rollback.SpecialSkip
	s.file("d/a", "a").fifo("d/fifo")
	// The address of a socket is short; a relative one would need a change of the working directory.
	socket := "d/s"
	if len(s.path(socket)) < 100 {
		l, err := net.Listen("unix", s.path(socket))
		s.must(err)
		defer l.Close()
	} else {
		s.fifo(socket)
	}
	sub := s.subject()
	c := s.checkpoint(sub)
	var listed []string
	for _, skipped := range c.Skipped {
		listed = append(listed, skipped.Path)
	}
	for _, path := range []string{"d/fifo", socket} {
		s.want(strings.Contains("\x00"+strings.Join(listed, "\x00")+"\x00", "\x00"+path+"\x00"),
			"%s is not among the skipped: %q", path, listed)
	}
	before := s.look()
	s.file("d/a", "changed")
	s.restore(sub, c.ID)
	s.holds("d/a", "a")
	after := s.look()
	for _, path := range []string{"d/fifo", socket} {
		s.untouched("what was skipped", before.Under(path), after.Under(path))
	}
}

func limits(s *scene) {
	s.file("small", "s").file("dir/big", strings.Repeat("x", 5000)).mkdir("1/2/3/4")
	for i := range 30 {
		s.file(fmt.Sprintf("n/%d", i), "1234567890")
	}
	s.must(s.err)
	for _, c := range []struct {
		limits rollback.Limits
		field  string
		path   string // "": any
	}{
		{rollback.Limits{FileSize: 4999}, "FileSize", "dir/big"},
		{rollback.Limits{Bytes: 5100}, "Bytes", ""},
		{rollback.Limits{Files: 20}, "Files", ""},
		{rollback.Limits{Depth: 3}, "Depth", "1/2/3/4"},
	} {
		s.opt.Limits = c.limits
		sub := s.again()
		_, err := sub.Checkpoint(s.ctx, s.tree, rollback.Meta{})
		s.refused(c.field, err, rollback.ErrTooLarge)
		limit, ok := errors.AsType[*rollback.LimitError](err)
		s.want(ok, "%s: %v is no *LimitError", c.field, err)
		s.want(limit.Limit == c.field, "the error names the limit %s, want %s", limit.Limit, c.field)
		s.want(limit.Path != "" && (c.path == "" || limit.Path == c.path), "%s: the error names %q, want %q", c.field,
			limit.Path, c.path)
	}
	s.opt.Limits = rollback.Limits{FileSize: 5000, Bytes: 5301, Files: 40, Depth: 4}
	s.checkpoint(s.again())
}

func setID(s *scene) {
	s.file("prog", "#!").chmod("prog", 0o4755)
	sub := s.subject()
	s.must(s.err)
	_, err := sub.Checkpoint(s.ctx, s.tree, rollback.Meta{})
	s.refused("a set-user-ID file", err, rollback.ErrUnsupported)
	s.want(strings.Contains(err.Error(), "prog"), "the error does not name the file: %v", err)
	s.opt.Privileged = true
	s.close()
	s.back(func() { s.chmod("prog", 0o755) })
}

// used is the space that the store's files take on disk.
func (s *scene) used() (sum int64) {
	s.must(filepath.WalkDir(s.store(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	}))
	return sum
}
