// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// streams are the host's ends of a box's three FIFOs. The shim has the others.
//
// They are opened without waiting: the shim may never come.
type streams struct {
	dir                   string
	stdin, stdout, stderr *os.File
	words                 chan []byte // what process 1 wrote to stderr, once that has ended
}

const (
	maxWords = 64 << 10
	pipeSize = 1 << 20
)

func (s *streams) path(name string) string { return filepath.Join(s.dir, name) }

// openStreams makes the directory and the FIFOs.
func openStreams(dir string) (_ *streams, err error) {
	s := &streams{dir: dir, words: make(chan []byte, 1)}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	for _, f := range []struct {
		name string
		to   **os.File
		flag int
	}{
		// Ours is a reader of stdin as well: a write waits for the shim instead of failing before it came.
		{"stdin", &s.stdin, os.O_RDWR}, {"stdout", &s.stdout, os.O_RDONLY}, {"stderr", &s.stderr, os.O_RDONLY},
	} {
		if err := unix.Mkfifo(s.path(f.name), 0o600); err != nil {
			return nil, &fs.PathError{Op: "mkfifo", Path: s.path(f.name), Err: err}
		}
		fd, err := unix.Open(s.path(f.name), f.flag|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: s.path(f.name), Err: err}
		}
		*f.to = os.NewFile(uintptr(fd), s.path(f.name))
		// Larger ones take fewer turns of the shim. There is a bound for what one user may have; less does as well.
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize)
	}
	return s, nil
}

// listen begins to read stderr. Before the shim has opened it there would be an end of file.
func (s *streams) listen() {
	stderr := s.stderr
	go func() {
		text, err := io.ReadAll(io.LimitReader(stderr, maxWords))
		if err != nil && !errors.Is(err, os.ErrClosed) {
			text = fmt.Appendf(text, "[%v]", err)
		}
		s.words <- text
		_, _ = io.Copy(io.Discard, stderr) // so that nobody waits for us
	}()
}

// close releases everything; whoever reads or writes returns. It may be called more than once.
func (s *streams) close() error {
	for _, f := range []*os.File{s.stdin, s.stdout, s.stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return err
	}
	return nil
}
