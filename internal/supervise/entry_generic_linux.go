// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 && !arm64

package supervise

// entryPC is 0: there is no init for this architecture.
const entryPC uintptr = 0
