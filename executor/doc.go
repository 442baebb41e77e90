// SPDX-License-Identifier: Apache-2.0

// Package executor defines what it means to run an untrusted command once: what goes in, what is kept away from it, and
// what is reported afterwards.
//
//	spec := executor.Spec{
//		Args:      []string{"go", "test", "./..."},
//		Workspace: "/path/to/variant",
//		Limits:    executor.Limits{Wall: time.Minute, Memory: 512 << 20},
//		Require:   executor.TreeKilled | executor.WorkspaceIsolated,
//	}
//	result, err := ex.Run(ctx, spec)
//	switch {
//	case errors.Is(err, executor.ErrUnsupported):
//		// this host cannot give what Require asks for; nothing was started
//	case err != nil:
//		// there is no verdict; never an acceptance
//	case result.OK():
//		// exited by itself with 0
//	default:
//		// result.Cause says why not
//	}
//
// The package holds the contract only. Implementations are siblings of it, and package executortest attacks them: an
// executor promises a [Capability] only where its cases pass.
//
// # What every executor promises
//
//   - C1: Args is executed as it stands. There is no shell, and a bare name is looked up in the run's own files.
//   - C2: The environment is [BaseEnv] with Spec.Env over it. No process in between has another one that could be read.
//   - C3: The payload has the descriptors 0, 1 and 2 and no others, whatever its host has open.
//   - C4: It works on a private copy of Workspace, and the original never changes. Links stay links; special files are
//     refused; [DefaultHidden] names are left out. What Overlay holds stands in the copy as if Workspace had held it,
//     and nothing of Workspace that is in the way is opened or followed.
//   - C5: Dir exists and is visible inside, or nothing is started. No other directory takes its place.
//   - C6: What is hidden can be neither read nor written; what is read-only is so all the way down. Rules may name what
//     does not exist, and nothing is created for them. A missing mount source is an error that names it.
//   - C7: No run meets what another run made, whether before it, after it or beside it.
//   - C8: Each phase has a deadline. Nothing waits without bound for the payload or for the caller's readers and
//     writers, and what is refused fails at once.
//   - C9: The run ends when its first process ends. The rest of its tree is killed then.
//   - C10: Cause, status, counters and usage come from the kernel, never from what the payload says.
//   - C11: If a required capability is missing, nothing is started. Nothing is ever weakened in silence.
//   - C12: Artifacts are what the run saw under their names: regular files, no links followed, sizes capped.
//   - C13: When Run returns, no process, file, mount, cgroup, lock or socket of the run is left; if one is, the error
//     says which.
//   - C14: The host program may be killed at any instant. What the run started dies with it, and the next start removes
//     the rest.
//   - C15: Runs at the same time share no files, descriptors, limits or results.
//   - C16: Limits bind the payload and not the set-up. A limit too small for any run to start is a fault.
//
// What holds beyond this depends on the executor and the host: see [Capability] and, after a run, [Result.Enforced].
//
// # Results and errors
//
// Whatever the payload does, its limits and a cancelled context included, is a [Result] and no error. An error means
// that there is no verdict:
//
//   - [ErrInvalidSpec], a [*SpecError]: the specification has faults; all of them are named.
//   - [ErrUnsupported], an [*UnsupportedError]: a capability is missing. It also matches [errors.ErrUnsupported].
//   - [*SetupError]: a step before the payload's start failed.
//   - [ErrLost]: the run started, and its end was not observed.
//   - [*CleanupError]: something could not be removed.
//   - [ErrClosed]: the executor was closed.
//   - the context's error: it was done before the start.
//
// The zero value of everything is the strict one: a zero [Result] is not OK, a zero [Limits] means the finite
// [DefaultLimits], a zero [Capability] promises nothing.
//
// # What it does not do
//
// It runs nothing by itself. It does not judge what a run produced, retry, schedule, or decide which capabilities a
// caller should require. It has no limit that means "unlimited" and no way to pass the host's environment on. Output is
// kept at its two ends only, and interleaving between the two streams is not recorded.
package executor
