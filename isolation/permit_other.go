// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package isolation

import (
	"errors"
	"fmt"
)

// readOthers cannot tell here who may write a file, so it reads none.
func readOthers(path string) (data []byte, byRoot bool, err error) {
	return nil, false, fmt.Errorf("%q: who can write it is not known on this system: %w", path, errors.ErrUnsupported)
}
