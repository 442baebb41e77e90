// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
)

// resolveError turns what the kernel refused to walk into a verdict, and leaves faults as they are.
func resolveError(path string, want kind, err error) error {
	switch err {
	case unix.ELOOP:
		return refuseKind(path, kindLink, want)
	case unix.ENOTDIR:
		return &refusal{ErrFileType, fmt.Sprintf("%+q is not below real directories only", path)}
	case unix.EXDEV:
		return refuseKind(path, kindMount, want)
	case unix.ENXIO: // a socket, or a FIFO without the other end
		return refuseKind(path, kindOther, want)
	}
	return pathError("open", path, err)
}

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

func metaOf(st *unix.Stat_t) meta {
	return meta{
		kind: kindOfMode(uint32(st.Mode)), perm: uint32(st.Mode) & 0o7777, uid: st.Uid, gid: st.Gid,
		nlink: uint64(st.Nlink), size: st.Size, dev: uint64(st.Dev), ino: st.Ino,
		mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
	}
}

func kindOfMode(mode uint32) kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return kindFile
	case unix.S_IFDIR:
		return kindDir
	case unix.S_IFLNK:
		return kindLink
	}
	return kindOther
}

// list reads the entries itself, because os.File.ReadDir asks by path, not by handle, where the file system does not
// report the types.
func (d *handleDir) list() ([]entry, error) {
	// A descriptor of its own has an offset of its own, so that a handle can be listed twice and by two goroutines.
	fd, err := fsys.Openat2(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, pathError("open", ".", err)
	}
	defer unix.Close(fd)
	return entriesOf(fd)
}

// listOnce spares the second descriptor: the handle is the caller's alone and was not read yet.
func (d *handleDir) listOnce() ([]entry, error) { return entriesOf(d.fd) }

func entriesOf(fd int) ([]entry, error) {
	entries := make([]entry, 0, 32)
	buf := make([]byte, 32<<10)
	for {
		var n int
		if err := fsys.Retry(func() (err error) { n, err = unix.ReadDirent(fd, buf); return err }); err != nil {
			return nil, pathError("readdirent", ".", err)
		}
		if n == 0 {
			return entries, nil
		}
		entries = appendEntries(entries, buf[:n])
	}
}

// appendEntries parses what getdents64 returned.
func appendEntries(entries []entry, buf []byte) []entry {
	for len(buf) > 0 {
		var name []byte
		var typ byte
		name, typ, _, buf = fsys.ParseDirent(buf)
		if s := string(name); s != "." && s != ".." {
			entries = append(entries, entry{s, kindOfType(typ)})
		}
	}
	return entries
}

func kindOfType(t byte) kind {
	switch t {
	case unix.DT_UNKNOWN:
		return kindUnknown
	case unix.DT_REG:
		return kindFile
	case unix.DT_DIR:
		return kindDir
	case unix.DT_LNK:
		return kindLink
	}
	return kindOther
}
