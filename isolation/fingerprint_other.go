// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package isolation

import (
	"errors"
	"fmt"
	"runtime"
)

// kernelFacts: the attacks exist on Linux only, so nothing can be proven here.
func kernelFacts() (release, bootID string, err error) {
	return "", "", fmt.Errorf("this is %s and not Linux: %w", runtime.GOOS, errors.ErrUnsupported)
}

// needsLoader: nothing is started here.
func needsLoader() bool { return false }
