// SPDX-License-Identifier: Apache-2.0

package executor

import "context"

// Executor runs one untrusted command at a time, as often and as concurrently as the caller likes, and reports truthfully
// what happened. The promises that hold for every implementation are listed in the package documentation; they are
// checked by package executortest.
//
// An implementation that holds resources between runs (a pool, a daemon, a lease) also implements io.Closer.
// Methods may be added to this interface in minor releases; embed an Executor to be safe against that.
type Executor interface {
	// Capabilities says what is enforced on this host for this caller. The value is constant after construction.
	Capabilities() Capability

	// Run executes the specification and returns when the whole process tree is dead and nothing of the run is left
	// but its declared artifacts. Whatever the payload did, its limits and a cancelled ctx included, is a Result with
	// a nil error. A nil Result with an error means that there is no verdict: the specification is invalid
	// ([ErrInvalidSpec]), a capability is missing ([ErrUnsupported]), ctx was done before the start, the set-up failed
	// ([SetupError]), the run was lost ([ErrLost]) or clean-up left something behind ([CleanupError]).
	Run(ctx context.Context, spec Spec) (*Result, error)
}
