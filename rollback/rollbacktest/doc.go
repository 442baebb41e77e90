// SPDX-License-Identifier: Apache-2.0

// Package rollbacktest is the conformance suite of package rollback: what every store of checkpoints must hold, whoever
// wrote it. It imports package rollback for the types, golang.org/x/sys and the standard library, nothing else of ours.
//
// # What a case does
//
// A [Case] makes a tree, has the store under test checkpoint and restore it, and compares trees with a walker of its
// own, [Look], which is slow, simple and shares no code with a store: bytes, kinds, permission bits, times, link
// groups, extended attributes, and, where nothing may have been touched, inodes and change times. [Run] runs every case
// as a subtest, and after them those that need a second process: it starts the calling test once more as a child, lets
// it checkpoint and restore, and kills it. [RunAsRoot] runs the cases that need mounts and devices.
//
// A case that is about more than [Subject] names the further interfaces in Need. If the store does not offer them the
// subtest records the test attribute "outcome" with "not offered", else with "held". There is no other way to leave a
// case out. [Offers] tells what a store offers, so that its author can demand that it is [AllFeatures].
//
// # Errors
//
// A check returns nil, an error that matches [ErrBreach] (a [*Breach]: the store does not hold what the case demands),
// or one that matches [ErrInconclusive] (no verdict: the case could not be set up). Both are failures. A check always
// returns: a watchdog ends every case.
//
// # What it does not do
//
// It cannot look into a store: hostile objects with right hashes, every bit of every file and a kill at every step are
// for the store's own tests. It cuts no power, and it does not prove that an fsync happened. It knows no store by name.
// While a check runs it changes the calling process: umask, working directory and HOME. All of it is undone, but
// nothing else should start meanwhile. Elsewhere than on Linux [Cases] is empty and [Run] fails, because nothing was
// proven.
package rollbacktest
