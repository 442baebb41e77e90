// SPDX-License-Identifier: Apache-2.0

// Package runaway holds no code of its own, only benchmarks: an iteration of package runaway in memory beside one call
// through two circuit breakers, whose state is a few counters. Ours accounts for budgets, rates, time and outcomes too.
package runaway
