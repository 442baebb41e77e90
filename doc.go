// SPDX-License-Identifier: Apache-2.0

// Package containment is the index of a library for Go programs that change their own code, or run code that nobody has
// read: a search over program variants, a coding agent, a grader of submissions. Such a program needs to run a variant
// and be told truthfully what happened, with nothing left behind, and to know that the variant could not reach what it
// must not. The library does this in tiers; docs/adr/0001-tiered-isolation.md says what they are and when which is due.
//
// This package holds no code. The whole is package isolation, which takes every variant through one guarded step; each
// of the others works alone. The smallest use is one run of a command:
//
//	ex, err := bubblewrap.New(ctx, bubblewrap.Config{})
//	result, err := ex.Run(ctx, executor.Spec{Args: []string{"go", "test", "./..."}, Workspace: dir})
//	if result.OK() { … }
//
// The packages:
//
//   - isolation: which tier is required, whether an executor reaches it here, and the one guarded step over all of it;
//   - allowlist: judges edits and applies exactly the bytes that it judged;
//   - rollback: whole, verified checkpoints of a tree, and an atomic restore; Linux;
//   - runaway: decides whether there may be another iteration, across crashes and restarts;
//   - executor: the contract that every tier obeys: what to run, with which limits, and what came of it;
//   - executor/rlimit: tier 1, a plain process behind another uid, resource limits, Landlock and seccomp; Linux;
//   - executor/bubblewrap: tier 1.5, namespaces made by a real unprivileged user; Linux;
//   - executor/containerd: tier 2, a fresh container per run; Linux, and a module of its own;
//   - executor/toolchain: what Go, Python and Node need of the host, so that tests run offline in any of them;
//   - executor/executortest and rollback/rollbacktest: conformance suites, attacks included, for any implementation.
//
// # What it does not do
//
// It does not judge whether a variant is good. It does not protect against the host's own root, nor against a kernel
// bug that the tier in use exposes; docs/threat-model.md lists what remains. A program that runs a variant in another
// way than through an executor is outside all of this.
package containment
