// SPDX-License-Identifier: Apache-2.0

// Package runtest holds tests and benchmarks that the executors under a guard share beyond the conformance suite: what runs
// leave behind on this host, whatever ends them, what they cost, and whether README.md says what they promise. It knows where such an executor keeps its things
// (executor/internal/hostrun), which the suite must not.
//
// # What it does not do
//
// It is imported by tests only.
package runtest
