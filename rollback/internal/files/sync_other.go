// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package files

import "os"

func startWriteout(*os.File) {}

func datasync(f *os.File) error { return f.Sync() }
