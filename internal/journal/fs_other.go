// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package journal

import (
	"errors"
	"fmt"
)

// OpenDir fails: there is no flock(2) and no openat(2) here.
func OpenDir(path string, _ bool) (FS, error) {
	return nil, fmt.Errorf("open %q: %w", path, errors.ErrUnsupported)
}
