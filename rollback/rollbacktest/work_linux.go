// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// work changes a tree. The first error stays and makes the rest do nothing, so that a tree is written as a list.
type work struct {
	root string
	err  error
}

func (w *work) path(name string) string { return w.root + "/" + name } // filepath.Join would clean names under test

func (w *work) do(err error) *work {
	w.err = errors.Join(w.err, err)
	return w
}

// file writes a file, parents included, with mode 0644. An existing one is truncated and written in place.
func (w *work) file(name, data string) *work {
	if w.err != nil {
		return w
	}
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o755); err != nil {
		return w.do(err)
	}
	return w.do(os.WriteFile(w.path(name), []byte(data), 0o644))
}

func (w *work) mkdir(name string) *work {
	if w.err != nil {
		return w
	}
	return w.do(os.MkdirAll(w.path(name), 0o755))
}

func (w *work) link(name, target string) *work {
	if w.err != nil {
		return w
	}
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o755); err != nil {
		return w.do(err)
	}
	return w.do(os.Symlink(target, w.path(name)))
}

// hard gives a file a further name; old may lie anywhere.
func (w *work) hard(name, old string) *work {
	if w.err != nil {
		return w
	}
	return w.do(os.Link(old, w.path(name)))
}

func (w *work) chmod(name string, mode uint32) *work {
	if w.err != nil {
		return w
	}
	return w.do(unix.Chmod(w.path(name), mode))
}

// stamp sets the modification time of the entry itself, links too, and leaves the access time.
func (w *work) stamp(name string, sec, nsec int64) *work {
	if w.err != nil {
		return w
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(0)}
	times[1].Sec, times[1].Nsec = sec, nsec
	return w.do(unix.UtimesNanoAt(unix.AT_FDCWD, w.path(name), times, unix.AT_SYMLINK_NOFOLLOW))
}

func (w *work) remove(names ...string) *work {
	for _, name := range names {
		if w.err == nil {
			w.do(removeAll(w.path(name)))
		}
	}
	return w
}

func (w *work) rename(from, to string) *work {
	if w.err != nil {
		return w
	}
	return w.do(os.Rename(w.path(from), w.path(to)))
}

func (w *work) fifo(name string) *work {
	if w.err != nil {
		return w
	}
	return w.do(unix.Mkfifo(w.path(name), 0o644))
}

// removeAll is os.RemoveAll for trees with directories that their owner may not write.
func removeAll(path string) error {
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(path))
}

// sample is a tree with something of everything that a store must bring back.
func sample(root string) error {
	w := work{root: root}
	w.mkdir(".").file("README", "read me\n").file("src/main.go", "package main\n").file("src/deep/er/x.txt", "deep")
	w.file("run.sh", "#!/bin/sh\n").chmod("run.sh", 0o755).file(".env", "SECRET=1\n").file("empty", "")
	w.mkdir("hollow/inner").link("to-file", "src/main.go").link("to-nowhere", "no/such").link("src/up", "../README")
	w.file("twin-a", "two names\n").hard("twin-b", w.path("twin-a")).hard("src/twin-c", w.path("twin-a"))
	w.file("locked/inside", "read only directory").chmod("locked/inside", 0o400).chmod("locked", 0o555)
	for i := range 20 {
		w.file(fmt.Sprintf("many/%02d/data", i), fmt.Sprint("number ", i))
	}
	w.stamp("src/main.go", 1_000_000_000, 123_456_789).stamp("to-file", 1_100_000_000, 1).stamp("hollow", 1_200_000_000, 2)
	return w.err
}

// scramble changes a sample in every way: edits, additions, removals, kinds, modes, times, links.
func scramble(root string) error {
	w := work{root: root}
	w.file("README", "something else, and longer than before\n").file("src/main.go", "x").file("new/sub/file", "new")
	w.remove("src/deep").file("src/deep", "a file now").remove("run.sh").file("run.sh/dir", "a directory now")
	w.remove("to-file").file("to-file", "a file now").remove("empty", "to-nowhere").link("empty", "README")
	w.chmod(".env", 0o600).stamp("hollow/inner", 5, 5).remove("twin-b").file("twin-b", "alone")
	w.chmod("locked", 0o755).remove("locked").mkdir("added").link("added/link", "..").remove("many/03", "many/07")
	return w.err
}
