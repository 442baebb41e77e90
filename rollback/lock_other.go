// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package rollback

import "os"

func tryLock(*os.File, bool) (bool, error) { return false, ErrUnsupported }

func dropLock(f *os.File) { _ = f.Close() }
