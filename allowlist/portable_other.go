// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package allowlist

import (
	"errors"
	"io/fs"
)

const openNonblock = 0

// metaOfInfo: link counts and owners are not known here, and nothing is decided without them.
func metaOfInfo(fs.FileInfo) (meta, error) { return meta{}, errors.ErrUnsupported }

func kindOfInfo(fs.FileMode) kind { return kindUnknown }
