// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"errors"
	"fmt"
)

// Lend gives the lock of the directory to what f calls, such as package rollback, which locks the same directory, and
// takes it back when f returns. f gets the absolute path. Meanwhile the Tree is in use: its other methods wait, so f
// must not call them.
//
// If somebody else took the lock meanwhile, or the directory is no longer where it was, the Tree is closed and the
// error says so, with ErrLocked in the first case: what the tree then holds is somebody else's.
func (t *Tree) Lend(f func(dir string) error) (err error) {
	release, err := t.use()
	if err != nil {
		return err
	}
	defer release()
	if err := t.inPlace(); err != nil {
		return fmt.Errorf("allowlist: lend: %w", err)
	}
	if err := unlock(t.lock); err != nil {
		return fmt.Errorf("allowlist: lend: %w", err)
	}
	defer func() {
		back := lock(t.lock)
		if back == nil {
			back = t.inPlace()
		}
		if back != nil {
			t.closed = true
			err = errors.Join(err, fmt.Errorf("allowlist: the tree %+q was taken while it was lent, and is closed: %w",
				t.path, back), t.lock.Close())
		}
	}()
	return f(t.path)
}
