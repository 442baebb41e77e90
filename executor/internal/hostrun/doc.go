// SPDX-License-Identifier: Apache-2.0

// Package hostrun is the host's side of a run, shared by the executors that start their payload under a guard
// (internal/supervise). A [Host] is what such an executor holds between runs: its state directory with leases and reserved
// uids, the scratch directory, the cgroups, the server that starts payloads. A [Run] is one run: it takes a lease and a
// uid, makes the scratch directory and the copy of the workspace, opens the streams, waits for the end, reads what the
// kernel counted, passes judgement, takes the artifacts, and removes everything again. What an executor adds, it says as a
// [Plan].
//
// # Errors
//
// [Open] fails with an error that matches [executor.ErrUnsupported]; [Run.Do] as [executor.Executor] says.
//
// # What it does not do
//
// It restricts nothing. What a payload may do is decided by the executor, in its Plan.
package hostrun
