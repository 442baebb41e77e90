// SPDX-License-Identifier: Apache-2.0

//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package journal

import "os"

// datasync is what the standard library does: on darwin F_FULLFSYNC, because fsync there does not reach the disk.
func datasync(f *os.File) error { return f.Sync() }
