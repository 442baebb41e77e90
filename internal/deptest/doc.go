// SPDX-License-Identifier: Apache-2.0

// Package deptest holds the rules of this module that no compiler checks, as tests over the whole tree:
//
//   - which modules the released packages and their tests may be built with, and which of ours may import which;
//   - that no test skips outside package testenv;
//   - that no exported name shows a type of go-multierror;
//   - that every Go file carries its licence line and stays short, and that no text names a machine it was written on;
//   - that a released go.mod holds nothing that would bother a consumer.
//
// Each rule says in its failure what to do. A rule is changed here, in review, or not at all.
//
// # What it does not do
//
// It cannot see a test that returns early instead of skipping, nor a dependency that hides behind a build tag of a
// system other than linux, darwin and windows.
package deptest
