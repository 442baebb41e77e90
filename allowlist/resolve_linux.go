// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// resolveStrict leaves the kernel nothing to follow: no "..", no link of either sort, no mount point.
const resolveStrict = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS |
	unix.RESOLVE_NO_XDEV

// maxRetries bounds what an attacker who renames in a loop can cost: the kernel answers EAGAIN when a rename anywhere
// made a resolution uncertain.
const maxRetries = 128

func openat2(fd int, path string, flags, mode uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: mode, Resolve: resolveStrict}
	var opened int
	err := retry(func() (err error) {
		opened, err = unix.Openat2(fd, path, &how)
		return err
	})
	return opened, err
}

func retry(call func() error) (err error) {
	for range maxRetries {
		if err = call(); err != unix.EINTR && err != unix.EAGAIN {
			return err
		}
	}
	return err
}

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
	fd, err := openat2(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, pathError("open", ".", err)
	}
	defer unix.Close(fd)
	var entries []entry
	buf := make([]byte, 32<<10)
	for {
		var n int
		if err := retry(func() (err error) { n, err = unix.ReadDirent(fd, buf); return err }); err != nil {
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
	const (
		offReclen = unsafe.Offsetof(unix.Dirent{}.Reclen)
		offType   = unsafe.Offsetof(unix.Dirent{}.Type)
		offName   = unsafe.Offsetof(unix.Dirent{}.Name)
	)
	for len(buf) > int(offName) {
		size := int(binary.NativeEndian.Uint16(buf[offReclen:]))
		name, _, _ := bytes.Cut(buf[offName:size], []byte{0})
		if s := string(name); s != "." && s != ".." {
			entries = append(entries, entry{s, kindOfType(buf[offType])})
		}
		buf = buf[size:]
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
