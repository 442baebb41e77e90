// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// walk lists every directory and stats every entry, with as many workers as there are CPUs, and does nothing else. No
// checkpoint that looks at a tree can be faster.
func walk(root string) (entries int, err error) {
	w := &walker{dirs: make(chan string, 1<<20)}
	w.open.Add(1)
	w.dirs <- root
	for range runtime.GOMAXPROCS(0) {
		go w.work()
	}
	w.open.Wait()
	close(w.dirs)
	if e := w.failed.Load(); e != nil {
		err = *e
	}
	return int(w.seen.Load()), err
}

type walker struct {
	dirs   chan string
	open   sync.WaitGroup
	seen   atomic.Int64
	failed atomic.Pointer[error]
}

func (w *walker) work() {
	buffer := make([]byte, 64<<10)
	for dir := range w.dirs {
		if err := w.list(dir, buffer); err != nil {
			w.failed.Store(&err)
		}
		w.open.Done()
	}
}

func (w *walker) list(dir string, buffer []byte) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Getdents(fd, buffer)
		if err != nil || n == 0 {
			return err
		}
		for rest := buffer[:n]; len(rest) > 0; {
			length := binary.NativeEndian.Uint16(rest[16:18])
			name := unix.ByteSliceToString(rest[19:length])
			kind := rest[18]
			rest = rest[length:]
			if name == "." || name == ".." {
				continue
			}
			var st unix.Statx_t
			if err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &st); err != nil {
				return err
			}
			w.seen.Add(1)
			if kind == unix.DT_DIR {
				w.open.Add(1)
				w.dirs <- dir + "/" + name
			}
		}
	}
}
