// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"fmt"
	"os"
	"time"
)

type lockMode struct{ exclusive, wait bool }

// lock takes the kernel's lock on a file or directory of the store, through a descriptor of its own, so that goroutines
// exclude each other as processes do. The lock ends with the process. Waiting is polling, since it must end with ctx.
func (s *Store) lock(ctx context.Context, name string, mode lockMode) (unlock func(), err error) {
	for {
		f, err := s.dir.OpenToRead(name)
		if err != nil {
			return nil, fmt.Errorf("rollback: lock %s: %w", s.join(name), err)
		}
		if err := waitLock(ctx, f, mode); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("rollback: lock %s: %w", s.join(name), err)
		}
		if s.stillNamed(f, name) {
			return func() { dropLock(f) }, nil
		}
		dropLock(f) // somebody put another file in its place, and others lock that one
	}
}

func (s *Store) stillNamed(f *os.File, name string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := s.dir.Stat(name)
	return err == nil && os.SameFile(held, named)
}

func waitLock(ctx context.Context, f *os.File, mode lockMode) error {
	const longest = 20 * time.Millisecond
	for pause := time.Millisecond / 4; ; pause = min(2*pause, longest) {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch ok, err := tryLock(f, mode.exclusive); {
		case err != nil:
			return err
		case ok:
			return nil
		case !mode.wait:
			return ErrLocked
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
