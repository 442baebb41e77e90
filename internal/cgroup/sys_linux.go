// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ops are the three operations that a plain directory tree does not answer as a control group would. Tests of the
// version 2 logic replace them.
type ops struct {
	mkdir func(parent int, name string) error
	rmdir func(parent int, name string) error
	write func(fd int, value string) error
}

var kernel = ops{
	mkdir: func(parent int, name string) error {
		return again(func() error { return unix.Mkdirat(parent, name, 0o755) })
	},
	rmdir: func(parent int, name string) error {
		return again(func() error { return unix.Unlinkat(parent, name, unix.AT_REMOVEDIR) })
	},
	write: func(fd int, value string) error {
		return again(func() error { _, err := unix.Write(fd, []byte(value)); return err })
	},
}

// again repeats what a signal interrupted. The Go runtime signals its own threads, and setting a memory limit gives up
// at once when a signal is pending.
func again(f func() error) error {
	_, err := retry(func() (struct{}, error) { return struct{}{}, f() })
	return err
}

func openDir(parent int, name string) (int, error) {
	return retry(func() (int, error) {
		return unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
}

func openFile(dir int, name string, flags int) (int, error) {
	return retry(func() (int, error) { return unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0) })
}

func retry[T any](f func() (T, error)) (T, error) {
	for {
		v, err := f()
		if !errors.Is(err, unix.EINTR) {
			return v, err
		}
	}
}

// read returns what the file holds now. Control files of interest are far shorter than the buffer.
func read(fd int, buf []byte) ([]byte, error) {
	n, err := retry(func() (int, error) { return unix.Pread(fd, buf, 0) })
	return buf[:max(n, 0)], err
}

func readFile(dir int, name string) ([]byte, error) {
	fd, err := openFile(dir, name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return read(fd, make([]byte, 4096))
}

// put writes a value and returns what the kernel made of it.
func (o ops) put(dir int, name, value string) (string, error) {
	fd, err := openFile(dir, name, unix.O_RDWR)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if err := o.write(fd, value); err != nil {
		return "", err
	}
	var buf [128]byte
	got, err := read(fd, buf[:])
	return string(bytes.TrimSpace(got)), err
}

// order writes a value to a file that cannot be read.
func (o ops) order(dir int, name, value string) error {
	fd, err := openFile(dir, name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return o.write(fd, value)
}

// field returns the number behind a key of a file with lines "key number".
func field(text []byte, key string) (int64, error) {
	for line := range bytes.Lines(text) {
		if rest, found := bytes.CutPrefix(line, []byte(key)); found && len(rest) > 0 && rest[0] == ' ' {
			return number(rest)
		}
	}
	return 0, fmt.Errorf("no line %q", key)
}

func number(text []byte) (int64, error) {
	return strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
}

func fail(op, path string, err error) error { return &os.PathError{Op: op, Path: path, Err: err} }
