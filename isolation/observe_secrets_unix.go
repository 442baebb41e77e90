// SPDX-License-Identifier: Apache-2.0

//go:build unix

package isolation

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// outOfReach reports whether access was refused by a directory of somebody else. One that the caller owns proves
// nothing: its mode can be changed, by a variant as well.
func outOfReach(path string, err error) bool {
	if !errors.Is(err, fs.ErrPermission) {
		return false
	}
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		return ok && os.Geteuid() != 0 && st.Uid != uint32(os.Geteuid())
	}
	return false
}
