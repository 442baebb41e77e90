// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package allowlist

import (
	"errors"
	"os"
)

// openNative: openat2 is Linux only; the portable walk takes over.
func openNative(*os.File) (dir, error) { return nil, errors.ErrUnsupported }
