// SPDX-License-Identifier: Apache-2.0

//go:build race

package executortest

// smallMemory is the smallest memory limit under which the payload starts: a binary built with the race detector maps
// its shadow memory first.
const smallMemory = 768 << 20
