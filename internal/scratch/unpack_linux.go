// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Unpack reads what [Pack] wrote and makes the tree in dst, an open and empty directory in which nobody else can make
// anything. Entries that the run may not change stay the caller's, with the group of the run. It reads no further than to
// the end of the tree.
//
// The data may be anything: a name is one component and never a way out of dst, a link is never followed, and memory does
// not depend on what a number says.
func Unpack(r io.Reader, dst *os.File, o UnpackOptions) error {
	if o.MaxBytes <= 0 || o.MaxFiles <= 0 {
		return fmt.Errorf("%w: MaxBytes %d and MaxFiles %d must be positive", ErrOptions, o.MaxBytes, o.MaxFiles)
	}
	in, ok := r.(byteReader)
	if !ok {
		in = bufio.NewReader(r)
	}
	conn, err := dst.SyscallConn()
	if err != nil {
		return err
	}
	u := &unpacker{in: in, o: o, self: os.Geteuid()}
	if ctl := conn.Control(func(fd uintptr) { u.dir, err = openat(int(fd), ".", openDir, 0) }); ctl != nil || err != nil {
		return errors.Join(ctl, err)
	}
	defer func() { unix.Close(u.dir) }()
	for {
		done, err := u.item()
		switch {
		case err == io.EOF, err == io.ErrUnexpectedEOF:
			return fmt.Errorf("%w: it ends too early", ErrPacked)
		case err != nil:
			return err
		case done:
			return nil
		}
	}
}

// byteReader is what a packed tree is read from; with less, a buffer would read beyond its end.
type byteReader interface {
	io.Reader
	io.ByteReader
}

// unpacker holds one descriptor, however deep the tree is: nobody else is there to move directories, so ".." leads back.
type unpacker struct {
	in    byteReader
	o     UnpackOptions
	self  int
	dir   int // the directory that began last
	depth int
	files int64
	bytes int64
	name  [maxTarget]byte
	buf   []byte
}

func (u *unpacker) item() (done bool, err error) {
	kind, err := u.in.ReadByte()
	if err != nil {
		return false, err
	}
	if kind == itemLeave {
		return u.leave()
	}
	name, err := u.component()
	if err != nil {
		return false, err
	}
	if u.files++; u.files > u.o.MaxFiles {
		return false, fmt.Errorf("%w: more than %d entries", ErrPacked, u.o.MaxFiles)
	}
	switch kind {
	case itemEnter:
		err = u.enter(name)
	case itemFile:
		err = u.file(name)
	case itemLink:
		err = u.link(name)
	default:
		return false, fmt.Errorf("%w: item %q", ErrPacked, kind)
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		err = &EntryError{Op: "unpack", Path: name, Err: errno}
	}
	return false, err
}

func (u *unpacker) text(limit int) (string, error) {
	n, err := binary.ReadUvarint(u.in)
	if err != nil {
		return "", damaged(err)
	}
	if n == 0 || n > uint64(limit) {
		return "", fmt.Errorf("%w: a text of %d bytes", ErrPacked, n)
	}
	if _, err := io.ReadFull(u.in, u.name[:n]); err != nil {
		return "", err
	}
	return string(u.name[:n]), nil
}

// component reads a name, which must be one.
func (u *unpacker) component() (string, error) {
	name, err := u.text(maxName)
	if err == nil && (name == "." || name == ".." || strings.ContainsAny(name, "/\x00")) {
		err = fmt.Errorf("%w: %q is no name", ErrPacked, name)
	}
	return name, err
}

// number reads one that is not larger than limit.
func (u *unpacker) number(limit uint64) (uint64, error) {
	n, err := binary.ReadUvarint(u.in)
	switch {
	case err != nil:
		return 0, damaged(err)
	case n > limit:
		return 0, fmt.Errorf("%w: number %d", ErrPacked, n)
	}
	return n, nil
}

// damaged tells an end from a number that is none.
func damaged(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return err
	}
	return fmt.Errorf("%w: %w", ErrPacked, err)
}

type meta struct {
	mode  uint32
	owned bool
	times [2]unix.Timespec
}

func (u *unpacker) owned() (mode uint32, owned bool, err error) {
	bits, err := u.number(ownedBit | unix.S_ISVTX | kept)
	if err == nil && bits&^(ownedBit|unix.S_ISVTX|kept) != 0 {
		err = fmt.Errorf("%w: mode %#o", ErrPacked, bits)
	}
	return uint32(bits) & (unix.S_ISVTX | kept), bits&ownedBit != 0, err
}

func (u *unpacker) meta() (m meta, err error) {
	if m.mode, m.owned, err = u.owned(); err != nil {
		return m, err
	}
	sec, err := u.number(math.MaxUint64)
	if err != nil {
		return m, err
	}
	nsec, err := u.number(1e9 - 1)
	t := unix.NsecToTimespec(int64(nsec))
	t.Sec = int64(sec)
	m.times = [2]unix.Timespec{t, t}
	return m, err
}

func (u *unpacker) owner(owned bool) int {
	if owned {
		return u.o.Owner.UID
	}
	return u.self
}

func (u *unpacker) enter(name string) error {
	if err := unix.Mkdirat(u.dir, name, 0o700); err != nil {
		return err
	}
	fd, err := openat(u.dir, name, openDir, 0)
	if err != nil {
		return err
	}
	unix.Close(u.dir)
	u.dir, u.depth = fd, u.depth+1
	return nil
}

func (u *unpacker) leave() (done bool, err error) {
	m, err := u.meta()
	if err != nil {
		return false, err
	}
	up := -1
	if u.depth > 0 { // before the mode may forbid it
		if up, err = openat(u.dir, "..", openDir, 0); err != nil {
			return false, &EntryError{Op: "unpack", Path: "..", Err: err}
		}
	}
	// Owner last but for the mode, which a change of owner may take bits from.
	err = unix.UtimesNanoAt(u.dir, ".", m.times[:], 0)
	if err == nil {
		err = unix.Fchown(u.dir, u.owner(m.owned), u.o.Owner.GID)
	}
	if err == nil {
		err = unix.Fchmod(u.dir, m.mode)
	}
	if up >= 0 {
		unix.Close(u.dir)
		u.dir = up
		u.depth--
		return false, err
	}
	return true, err
}

func (u *unpacker) link(name string) error {
	target, err := u.text(maxTarget)
	if err != nil {
		return err
	}
	_, owned, err := u.owned()
	if err != nil {
		return err
	}
	if strings.ContainsRune(target, 0) {
		return fmt.Errorf("%w: target %q", ErrPacked, target)
	}
	if err := unix.Symlinkat(target, u.dir, name); err != nil {
		return err
	}
	return unix.Fchownat(u.dir, name, u.owner(owned), u.o.Owner.GID, unix.AT_SYMLINK_NOFOLLOW)
}

func (u *unpacker) file(name string) error {
	m, err := u.meta()
	if err != nil {
		return err
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	out, err := openat(u.dir, name, flags, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(out)
	if err := u.content(out); err != nil {
		return err
	}
	if err := unix.UtimesNanoAt(u.dir, name, m.times[:], unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if err := unix.Fchown(out, u.owner(m.owned), u.o.Owner.GID); err != nil {
		return err
	}
	return unix.Fchmod(out, m.mode)
}

// content writes the segments of a file.
func (u *unpacker) content(out int) error {
	off, hole := int64(0), false
	for {
		kind, err := u.in.ReadByte()
		if err != nil {
			return err
		}
		if kind == segmentEnd {
			if hole { // at the end, with no data to be written behind it
				return unix.Ftruncate(out, off)
			}
			return nil
		}
		n, err := u.number(math.MaxInt64)
		if err != nil {
			return err
		}
		if int64(n) > u.o.MaxBytes-u.bytes {
			return fmt.Errorf("%w: more than %d bytes", ErrPacked, u.o.MaxBytes)
		}
		u.bytes += int64(n)
		switch {
		case kind == segmentHole:
			hole = true
		case kind == segmentData && n <= maxSegment:
			if hole = false; u.buf == nil {
				u.buf = make([]byte, maxSegment)
			}
			if _, err := io.ReadFull(u.in, u.buf[:n]); err != nil {
				return err
			}
			if err := writeAll(out, u.buf[:n], off); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: segment %q of %d bytes", ErrPacked, kind, n)
		}
		off += int64(n)
	}
}

func writeAll(out int, p []byte, off int64) error {
	for len(p) > 0 {
		n, err := again(func() (int, error) { return unix.Pwrite(out, p, off) })
		if err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}
