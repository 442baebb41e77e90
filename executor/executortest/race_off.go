// SPDX-License-Identifier: Apache-2.0

//go:build !race

package executortest

// smallMemory is the smallest memory limit under which the payload starts, with room to spare: where only the data
// segment can be limited, a Go program needs 64 MiB.
const smallMemory = 128 << 20
