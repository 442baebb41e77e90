// SPDX-License-Identifier: Apache-2.0

//go:build race

package box

// Overhead is larger where the supervisor is a program with the race detector in it, which is a test.
const Overhead = 64 << 20
