// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package allowlist_test

import "time"

var started = time.Now()

// threadTime is time on the wall where the thread's own cannot be had.
func threadTime() time.Duration { return time.Since(started) }
