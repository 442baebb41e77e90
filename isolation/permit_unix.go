// SPDX-License-Identifier: Apache-2.0

//go:build unix

package isolation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// readOthers reads a file that the caller cannot change or replace, and reports whether the caller is root.
//
// Every directory from the top down is looked at by name. That is safe against a swap: once the caller cannot write a
// directory, it cannot change what a name in it means, and the names above were settled before.
func readOthers(path string) (data []byte, byRoot bool, err error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return nil, false, fmt.Errorf("%q is not an absolute path in its shortest form", path)
	}
	euid := uint32(os.Geteuid())
	var owners []uint32
	for at := range path {
		if at > 0 && path[at] != '/' {
			continue
		}
		dir := path[:max(at, 1)]
		if at == 0 {
			dir = "/"
		}
		owner, err := beyondReach(dir, syscall.S_IFDIR, euid)
		if err != nil {
			return nil, false, err
		}
		owners = append(owners, owner)
	}
	owner, err := beyondReach(path, syscall.S_IFREG, euid)
	if err != nil {
		return nil, false, err
	}
	for _, above := range owners {
		if above != 0 && above != owner {
			return nil, false, fmt.Errorf("a directory above %q belongs to uid %d, the file to %d; use directories of root "+
				"or of the file's owner", path, above, owner)
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, maxPermitFile+1))
	switch {
	case err != nil:
		return nil, false, err
	case len(data) > maxPermitFile:
		return nil, false, fmt.Errorf("%q is larger than %d bytes", path, maxPermitFile)
	}
	return data, euid == 0, nil
}

// beyondReach refuses what is not of the wanted kind, or what the caller, or everybody, can change. It returns the
// owner.
func beyondReach(path string, kind, euid uint32) (uint32, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return 0, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	mode := uint32(st.Mode) // 16 bits wide on some systems
	switch {
	case mode&syscall.S_IFMT != kind:
		return 0, fmt.Errorf("%q is neither a plain directory nor a regular file; links are not followed", path)
	case kind == syscall.S_IFREG && st.Nlink != 1:
		return 0, fmt.Errorf("%q has a second name, where it could be changed", path)
	case mode&0o022 != 0:
		return 0, fmt.Errorf("others can write %q (mode %#o); chmod go-w it", path, mode&0o7777)
	case euid == 0 && st.Uid != 0:
		return 0, fmt.Errorf("%q belongs to uid %d; for a loop that runs as root it must be root's", path, st.Uid)
	case euid == 0:
		return st.Uid, nil
	case st.Uid == euid:
		return 0, fmt.Errorf("%q belongs to uid %d, which the loop runs as; let another user own it", path, euid)
	}
	// Modes do not tell of access lists, capabilities or read-only mounts; the kernel does.
	switch err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS); {
	case err == nil:
		return 0, fmt.Errorf("the loop's uid %d can write %q", euid, path)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		return st.Uid, nil
	default:
		return 0, fmt.Errorf("whether %q can be written: %w", path, err)
	}
}
