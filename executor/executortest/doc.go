// SPDX-License-Identifier: Apache-2.0

// Package executortest is the conformance suite of package executor: attacks and semantics that every executor must
// pass, whoever wrote it. It imports the standard library and package executor, nothing else, and the attacks are the
// calling binary itself, executed again inside the run, so that nothing has to be installed in the sandbox.
//
// # What a case does
//
// A [Case] without Needs holds for every executor, whatever its tier. A case with Needs is an attack on what those
// capabilities promise. [Run] treats it in one of two ways, and never skips it:
//
//   - The capabilities are promised: the attack must be contained.
//   - They are not: a run that requires them must be refused with [executor.ErrUnsupported], and nothing may start.
//
// [RunAgain] does the same with the cases that a difference between two arrangements of one executor touches.
//
// Each passed case records the test attribute "outcome" with "contained" or "refused", so that `go test -json` yields
// the table of this host.
//
// # How a verdict is reached
//
// Before an attack is tried on the executor under test it runs once, per process, under a control: plain execution with
// no protection. There it must succeed. An attack that fails even then proves nothing, nor does one whose payload died
// on its way: the payload reports that it got there by hashing a fresh nonce. Both are [ErrInconclusive], which is a
// failure and never a pass. The verdict itself is taken on the host: digests of files, accept logs of listeners, sweeps
// of /proc, secrets that come out. Secrets are fresh random values and reach neither an argument list nor, unless the
// case is about that, an environment.
//
// A busy machine is no verdict. An attack that hits a window may miss it a few times under the control, a payload that
// met its time limit before its attack gets more, and a result that is late, with nothing else wrong, is asked for again:
// an executor that waits where it must not is late each time.
//
// # Errors
//
// A check returns nil, an error that matches [ErrBreach] (a [*Breach]: the executor does not hold what it promised), or
// one that matches [ErrInconclusive] (no verdict). It always returns: a watchdog ends every case.
//
// # What it does not do
//
// It does not prove the absence of kernel bugs, it knows no executor by name and it asks no address but loopback. While
// a check runs it changes the calling process: variables are added to its environment, descriptors are opened that
// children inherit, signals are ignored. All of it is undone, but nothing else should start processes meanwhile. Checks
// may run at the same time, unless one of them is marked Alone. The suite needs Linux on amd64, arm64, riscv64 or
// loong64, and a temporary directory from which programs can be executed. Elsewhere [Cases] is empty and [Run] fails,
// because nothing was proven.
//
// Importing the package registers the payloads: a process whose first argument is the package's marker becomes one of
// them before main. In any other process the import does nothing.
package executortest
