// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist

import (
	"fmt"
	"io/fs"
	"syscall"
)

// openNonblock keeps an open from waiting for the other end of a FIFO.
const openNonblock = syscall.O_NONBLOCK

func metaOfInfo(info fs.FileInfo) (meta, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return meta{}, fmt.Errorf("allowlist: no link count for %+q on this system", info.Name())
	}
	return meta{
		kind: kindOfInfo(info.Mode()), perm: uint32(st.Mode) & 0o7777, uid: st.Uid, gid: st.Gid,
		nlink: uint64(st.Nlink), size: st.Size, dev: uint64(st.Dev), ino: uint64(st.Ino),
		mtime: info.ModTime().UnixNano(), ctime: changeTime(st),
	}, nil
}

func kindOfInfo(mode fs.FileMode) kind {
	switch mode.Type() {
	case 0:
		return kindFile
	case fs.ModeDir:
		return kindDir
	case fs.ModeSymlink:
		return kindLink
	}
	return kindOther
}
