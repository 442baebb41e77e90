// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// randomCases change trees at random and compare everything. The seed is fixed, so that a failure comes back.
func randomCases() []Case {
	return []Case{
		newCase("P1", "random-changes", 0, "some sequence of changes is not undone", randomChanges),
	}
}

func randomChanges(s *scene) {
	for seed := range uint64(4) {
		s.remove("t").mkdir("t")
		s.must(s.err)
		r := rand.New(rand.NewPCG(seed, 77))
		m := mutator{work: work{root: s.tree}, r: r}
		for range 60 {
			m.step()
		}
		sub := s.again()
		var ids []rollback.ID
		var trees []Tree
		for range 6 {
			for range r.IntN(25) {
				m.step()
			}
			s.must(m.err)
			trees, ids = append(trees, s.look()), append(ids, s.checkpoint(sub).ID)
			if r.IntN(2) == 0 {
				i := r.IntN(len(ids))
				s.restore(sub, ids[i])
				s.same(fmt.Sprintf("seed %d, state %d of %d", seed, i, len(ids)), trees[i], s.look())
			}
		}
		for _, i := range r.Perm(len(ids)) {
			s.restore(sub, ids[i])
			s.same(fmt.Sprintf("seed %d, state %d at the end", seed, i), trees[i], s.look())
		}
	}
}

// mutator makes one random change after another. Names come from a small set, so that kinds meet.
type mutator struct {
	work
	r *rand.Rand
}

func (m *mutator) name() string {
	parts := []string{"t"}
	for range 1 + m.r.IntN(3) {
		parts = append(parts, string(rune('a'+m.r.IntN(5))))
	}
	return strings.Join(parts, "/")
}

// step does something; that a parent is no directory, or a name not there, is part of the game.
func (m *mutator) step() {
	name := m.name()
	full := m.root + "/" + name
	var err error
	switch m.r.IntN(10) {
	case 0, 1:
		if err = os.MkdirAll(path.Dir(full), 0o755); err == nil {
			err = os.WriteFile(full, m.bytes(), 0o644)
		}
	case 2:
		err = os.MkdirAll(full, 0o755)
	case 3:
		err = os.Symlink([]string{"a", "../b", "/nowhere", "."}[m.r.IntN(4)], full)
	case 4:
		err = os.Link(m.root+"/"+m.name(), full)
	case 5:
		err = os.RemoveAll(full)
	case 6:
		err = os.Rename(m.root+"/"+m.name(), full)
	case 7:
		if info, e := os.Lstat(full); e == nil && info.Mode()&fs.ModeSymlink == 0 {
			err = os.Chmod(full, fs.FileMode(0o700|m.r.IntN(0o100)))
		}
	case 8:
		times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: m.r.Int64N(2_000_000_000), Nsec: m.r.Int64N(1_000_000_000)}}
		err = unix.UtimesNanoAt(unix.AT_FDCWD, full, times, unix.AT_SYMLINK_NOFOLLOW)
	case 9:
		var f *os.File
		if f, err = os.OpenFile(full, os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0); err == nil {
			_, err = f.Write(m.bytes())
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil && !expected(err) {
		m.err = errors.Join(m.err, err)
	}
}

// expected tells a step that made no sense from a trouble of the host.
func expected(err error) bool {
	for _, errno := range []error{unix.ENOENT, unix.ENOTDIR, unix.EISDIR, unix.EEXIST, unix.ENOTEMPTY, unix.EINVAL,
		unix.ELOOP,
		unix.EPERM, unix.EACCES, unix.EXDEV} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func (m *mutator) bytes() []byte {
	data := make([]byte, m.r.IntN(3)*m.r.IntN(3000))
	for i := range data {
		data[i] = byte(m.r.IntN(8))
	}
	return data
}
