// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
)

// handleDir is a directory held by a descriptor. Every name is resolved by the kernel below it.
type handleDir struct {
	fd   int
	root bool // borrowed from the Tree, which closes it
}

// openNative returns the root of the walk with openat2. It fails with ENOSYS on kernels before 5.6 and with EPERM or
// ENOSYS where a system-call filter denies it; then the caller takes the portable walk.
func openNative(f *os.File) (dir, error) {
	d := &handleDir{fd: int(f.Fd()), root: true}
	probe, err := d.open(".")
	runtime.KeepAlive(f)
	if err != nil {
		return nil, err
	}
	return d, probe.close()
}

func (d *handleDir) open(path string) (dir, error) {
	fd, err := fsys.Openat2(d.fd, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, resolveError(path, kindDir, err)
	}
	return &handleDir{fd: fd}, nil
}

func (d *handleDir) close() error {
	if d.root {
		return nil
	}
	return unix.Close(d.fd)
}

func (d *handleDir) self() (meta, error) {
	var st unix.Stat_t
	err := fsys.Retry(func() error { return unix.Fstat(d.fd, &st) })
	return metaOf(&st), pathError("stat", ".", err)
}

func (d *handleDir) lstat(name string) (meta, error) {
	var st unix.Stat_t
	err := fsys.Retry(func() error { return unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return metaOf(&st), pathError("lstat", name, err)
}

// openFile opens without blocking, so that a FIFO that appears at the name cannot hold the guard up, and judges what it
// opened, not what the name showed before.
func (d *handleDir) openFile(name string) (*os.File, meta, error) {
	fd, m, err := d.openRaw(name)
	if err != nil {
		return nil, m, err
	}
	return os.NewFile(uintptr(fd), name), m, nil
}

func (d *handleDir) openRaw(name string) (int, meta, error) {
	fd, err := fsys.Openat2(d.fd, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, meta{}, resolveError(name, kindFile, err)
	}
	var st unix.Stat_t
	if err := fsys.Retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		unix.Close(fd)
		return -1, meta{}, pathError("stat", name, err)
	}
	m := metaOf(&st)
	if err := refuseKind(name, m.kind, kindFile); err != nil {
		unix.Close(fd)
		return -1, m, err
	}
	return fd, m, nil
}

// digest does without an os.File, which asks the kernel twice more whether it could wait for the file.
func (d *handleDir) digest(name string) (Digest, meta, error) {
	fd, m, err := d.openRaw(name)
	if err != nil {
		return Digest{}, m, err
	}
	defer unix.Close(fd)
	sum, err := sumFile(rawFile(fd), m.size)
	return sum, m, pathError("read", name, err)
}

// rawFile reads a descriptor.
type rawFile int

func (f rawFile) Read(p []byte) (n int, err error) {
	err = fsys.Retry(func() (err error) { n, err = unix.Read(int(f), p); return err })
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

func (d *handleDir) createFile(name string) (*os.File, error) {
	fd, err := fsys.Openat2(d.fd, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (d *handleDir) readlink(name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(d.fd, name, buf)
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	return string(buf[:n]), nil
}

func (d *handleDir) mkdir(name string) error {
	return pathError("mkdir", name, fsys.Retry(func() error { return unix.Mkdirat(d.fd, name, 0o755) }))
}

func (d *handleDir) remove(name string) error {
	return pathError("remove", name, fsys.Retry(func() error { return unix.Unlinkat(d.fd, name, 0) }))
}

func (d *handleDir) rmdir(name string) error {
	return pathError("rmdir", name, fsys.Retry(func() error { return unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR) }))
}

func (d *handleDir) chmod(perm uint32) error {
	return pathError("chmod", ".", fsys.Retry(func() error { return unix.Fchmod(d.fd, perm) }))
}

func (d *handleDir) setTime(name string, mtime int64) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(mtime)}
	return pathError("utimensat", name, fsys.Retry(func() error {
		return unix.UtimesNanoAt(d.fd, name, times, unix.AT_SYMLINK_NOFOLLOW)
	}))
}

func (d *handleDir) sync() error {
	return pathError("sync", ".", fsys.Retry(func() error { return unix.Fsync(d.fd) }))
}

// exchange swaps two names in one step. Some network file systems cannot (EINVAL); then two renames do it, as in the
// portable walk.
func (d *handleDir) exchange(a, b string) error {
	err := d.renameat2(a, b, unix.RENAME_EXCHANGE)
	if err == unix.EINVAL || err == unix.ENOSYS {
		return exchangeByLink(a, b, d.link, d.rename, d.remove)
	}
	return pathError("exchange", b, err)
}

func (d *handleDir) place(from, to string) error {
	err := d.renameat2(from, to, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS {
		return placeByLink(from, to, d.link, d.remove)
	}
	return pathError("rename", to, err)
}

func (d *handleDir) renameat2(from, to string, flags uint) error {
	return fsys.Retry(func() error { return unix.Renameat2(d.fd, from, d.fd, to, flags) })
}

func (d *handleDir) rename(from, to string) error {
	return pathError("rename", to, d.renameat2(from, to, 0))
}

func (d *handleDir) link(from, to string) error {
	return pathError("link", to, fsys.Retry(func() error { return unix.Linkat(d.fd, from, d.fd, to, 0) }))
}
