// SPDX-License-Identifier: Apache-2.0

package box

import (
	"context"
	"errors"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/scratch"
)

// inMemory is the size up to which a packed directory costs no file.
const inMemory = 1 << 20

// Rules say what of a directory of the host goes into a box.
type Rules = scratch.Options

// Packed is a directory of the host on its way into a box. It must be closed.
type Packed struct {
	stats scratch.Stats
	spool spool
}

// Pack reads the directory source and keeps a copy that can be sent: in memory if it is small, else in an unlinked file in
// dir. Every rule of a workspace is applied here, so what is wrong with it is known before a box exists. Errors are those
// of [scratch.Pack]; Owner of the rules is set here.
func Pack(ctx context.Context, dir, source string, rules Rules) (*Packed, error) {
	rules.Owner = &scratch.Owner{UID: UID, GID: GID}
	p := &Packed{spool: spool{dir: dir}}
	var err error
	if p.stats, err = scratch.Pack(ctx, source, &p.spool, rules); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Stats say how large the copy will be inside; Allocated is what its files take on a tmpfs.
func (p *Packed) Stats() scratch.Stats { return p.stats }

// Inodes is the number of files, directories and links.
func (p *Packed) Inodes() int64 { return p.stats.Files + p.stats.Dirs + p.stats.Links }

// Close releases the copy.
func (p *Packed) Close() error {
	p.spool.memory = nil
	if p.spool.file == nil {
		return nil
	}
	err := p.spool.file.Close()
	p.spool.file = nil
	return err
}

// spool is bytes in memory, or in a file once there are many.
type spool struct {
	dir    string
	memory []byte
	file   *os.File
}

// Write never keeps p.
func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && len(s.memory)+len(p) <= inMemory {
		s.memory = append(s.memory, p...)
		return len(p), nil
	}
	if s.file == nil {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	return s.file.Write(p)
}

func (s *spool) spill() error {
	fd, err := unix.Open(s.dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) { // not every file system has files without a name
		fd, err = unix.MemfdCreate("workspace", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return &os.PathError{Op: "open temporary file in", Path: s.dir, Err: err}
	}
	s.file = os.NewFile(uintptr(fd), s.dir)
	_, err = s.file.Write(s.memory)
	s.memory = nil
	return err
}

// send calls f with everything, piece by piece.
func (s *spool) send(size int, f func([]byte) error) error {
	if s.file == nil {
		for rest := s.memory; len(rest) > 0; {
			n := min(size, len(rest))
			if err := f(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	}
	in, buf := io.NewSectionReader(s.file, 0, math.MaxInt64), make([]byte, size)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if err := f(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
