// SPDX-License-Identifier: Apache-2.0

//go:build linux && !amd64

package seccomp_test

// foreign has nothing to try here: 64-bit code cannot make calls of another ABI.
func foreign(string) int { return 0 }
