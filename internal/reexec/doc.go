// SPDX-License-Identifier: Apache-2.0

// Package reexec starts the running program once more as a stage: a helper process that prepares and watches a payload.
//
// Go has no hook between fork and exec, so whatever has to happen there needs a process of ours. A package registers its
// stage in an init function; users of the library add no call to main or TestMain. In a process that is not a stage,
// registration compares one string and does nothing else.
//
// A stage is recognised by a fixed argv[0] and a sealed memory file on descriptor 3; either alone is not enough. All
// parameters come through that file, never through arguments or the environment, which others may read. The stage has an
// empty environment and no descriptor of the parent but those that it was given.
//
// # Errors
//
// Start fails with the error of the kernel call; on systems without memfd with [errors.ErrUnsupported].
//
// # What it does not do
//
// Initialisers of packages that the stage's package does not import may run before the stage. A program whose
// initialisers are slow pays for them in every run.
package reexec
