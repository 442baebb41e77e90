// SPDX-License-Identifier: Apache-2.0

//go:build arm64 || riscv64 || loong64

package executortest

// Elsewhere a process cannot call through another interface than its own.
func abiCases() []Case { return nil }

// abiPayloads is empty here; the table of payloads asks for it on every architecture.
func abiPayloads() map[string]func(*payload) { return nil }
