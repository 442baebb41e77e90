// SPDX-License-Identifier: Apache-2.0

// Package hostrun is the host's side of a run, shared by the executors that start their payload under a guard
// (internal/supervise): its streams, the wait for its end, and the verdict over what the kernel counted.
//
// # What it does not do
//
// It restricts nothing. What a payload may do is decided by the executor, before Start.
package hostrun
