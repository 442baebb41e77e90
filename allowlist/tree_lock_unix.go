// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package allowlist

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openLocked opens a directory to read, because a lock needs a real descriptor, and locks it.
func openLocked(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if err == unix.EWOULDBLOCK {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %+q: %w", name, err), f.Close())
	}
	return f, nil
}
