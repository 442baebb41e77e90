// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package rollback

// Open returns [ErrUnsupported] on this system.
func Open(dir string, o *Options) (*Store, error) { return nil, ErrUnsupported }

func (s *Store) free() (int64, error) { return 0, ErrUnsupported }
