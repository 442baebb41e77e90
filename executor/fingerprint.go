// SPDX-License-Identifier: Apache-2.0

package executor

// Fingerprinter is an executor that can say what it would run with: its version, the digest of the programs that it
// starts, and what its configuration changes. A verification holds for one fingerprint; whoever keeps one compares
// before each run and verifies again when it has changed.
//
// The text is printable, tells nothing secret, does not depend on the host's boot or load, and is "" if it cannot be
// told. It is computed anew for each call and takes well under a millisecond. A type that wraps a Fingerprinter and
// changes how runs are made needs a Fingerprint of its own.
type Fingerprinter interface {
	Fingerprint() string
}
