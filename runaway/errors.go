// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// What a call can fail with; errors.Is finds them.
var (
	// ErrStopped matches every [*StopError]: the run is over.
	ErrStopped = errors.New("runaway: stopped")
	// ErrPaused: the caller's context ended during a pause.
	ErrPaused = errors.New("runaway: paused")
	// ErrLost: the iteration is not open. It ended, took too long, or never was.
	ErrLost = errors.New("runaway: the iteration is not open")
	// ErrClosed: the governor was closed, or never opened.
	ErrClosed = errors.New("runaway: the governor is closed")

	// ErrConfig matches every [*ConfigError]. The ones below it say what about the configuration.
	ErrConfig = errors.New("runaway: configuration refused")
	// ErrInvalidLimits: a field of Limits has no meaning.
	ErrInvalidLimits = errors.New("invalid limits")
	// ErrUnmetered: a limit can never fire, because nothing reports what it limits.
	ErrUnmetered = errors.New("a limit without a meter")
	// ErrInvalidOptions: a name, a file or an amendment.
	ErrInvalidOptions = errors.New("invalid options")
	// ErrUntrusted: somebody else could change what the run depends on.
	ErrUntrusted = errors.New("not under the host's control")
	// ErrInvalidUsage: a negative amount. It would be a refund, so it is not taken.
	ErrInvalidUsage = errors.New("runaway: negative usage")
	// ErrNoFingerprint: the zero Fingerprint identifies nothing, so nothing can be said about it.
	ErrNoFingerprint = errors.New("runaway: no fingerprint")
	// ErrUnapproved: a pause can be ended, and a limit raised, only by somebody with a name and a reason.
	ErrUnapproved = errors.New("runaway: no name or no reason given")
	// ErrLimitsLoosened: the limits allow more than those that are recorded, and no amendment says so.
	ErrLimitsLoosened = errors.New("runaway: limits loosened without an amendment")

	// ErrNoState: the run never existed.
	ErrNoState = errors.New("runaway: no such run")
	// ErrStateCorrupt: the record of the run is damaged or gone. It is never made anew.
	ErrStateCorrupt = errors.New("runaway: the state is damaged")
	// ErrStateLocked: another governor has the run open.
	ErrStateLocked = errors.New("runaway: the state is in use")
)

// StopError says why a run is over. It is a result and not a failure: nothing is gained by trying again. Every governor
// of the run gives the same one, also after a restart.
type StopError struct {
	Reason    Reason    `json:"reason"`
	Limit     string    `json:"limit"` // what was reached
	Value     string    `json:"value"` // and what reached it
	Iteration int       `json:"n"`     // the last one that had begun
	RunID     string    `json:"-"`
	Scope     string    `json:"-"` // which governor: "" is the run itself, "a/b" the child b of its child a
	At        time.Time `json:"at"`
	Graceful  bool      `json:"-"`      // the host may exit with 0
	Drain     bool      `json:"drain"`  // iterations that had begun may finish; otherwise their contexts are cancelled
	Detail    string    `json:"detail"` // what else there is to know
	Err       error     `json:"-"`      // what failed, if something did
}

// Error names the run, the rule and the way out.
func (e *StopError) Error() string {
	if e == nil {
		return "runaway: not stopped" // Status.Stop of a run that goes on
	}
	var b strings.Builder
	fmt.Fprintf(&b, "runaway: run %q", e.RunID)
	if e.Scope != "" {
		fmt.Fprintf(&b, ", child %q,", e.Scope)
	}
	fmt.Fprintf(&b, " stopped at iteration %d: %v", e.Iteration, e.Reason)
	if e.Limit != "" {
		fmt.Fprintf(&b, ", %s", e.Limit)
	}
	if e.Value != "" {
		fmt.Fprintf(&b, ", at %s", e.Value)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, " (%s)", e.Detail)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Reason.known() {
		fmt.Fprintf(&b, "; the way out: %s", reasons[e.Reason].fix)
	}
	return b.String()
}

// Unwrap returns ErrStopped and what failed.
func (e *StopError) Unwrap() []error {
	switch {
	case e == nil:
		return nil
	case e.Err == nil:
		return []error{ErrStopped}
	}
	return []error{ErrStopped, e.Err}
}

// ConfigError holds everything that is wrong with what Open or Child was given.
type ConfigError struct{ Problems []error }

// Error lists the problems, one on a line.
func (e *ConfigError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %d problem(s)", ErrConfig, len(e.Problems))
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n  %v", p)
	}
	return b.String()
}

// Unwrap returns ErrConfig and the problems.
func (e *ConfigError) Unwrap() []error { return append([]error{ErrConfig}, e.Problems...) }

// LeakError names what was still at work when a governor was closed. The iterations are recorded as Failed; whatever
// runs in them is for the executor to kill.
type LeakError struct {
	RunID      string
	Iterations []OpenIteration // those that had begun and not ended
	Observer   bool            // a call of the observer had not returned
}

// OpenIteration is one that has begun and not ended.
type OpenIteration struct {
	Scope     string // the governor: "" is the run itself
	Iteration int
	Since     time.Time
}

// Error names the iterations.
func (e *LeakError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "runaway: run %q was closed with %d open iteration(s)", e.RunID, len(e.Iterations))
	for _, o := range e.Iterations {
		fmt.Fprintf(&b, "; %d", o.Iteration)
		if o.Scope != "" {
			fmt.Fprintf(&b, " of %q", o.Scope)
		}
		fmt.Fprintf(&b, " since %s", o.Since.Format(time.RFC3339))
	}
	if e.Observer {
		b.WriteString("; the observer has not returned")
	}
	b.WriteString("; kill what runs in them, and let every iteration end before Close")
	return b.String()
}

// timeoutError is the cause with which the context of an iteration is cancelled that took too long.
type timeoutError struct {
	n     int
	limit time.Duration
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("runaway: iteration %d took longer than PerIteration, %v", e.n, e.limit)
}

func (e *timeoutError) Unwrap() []error { return []error{ErrLost, context.DeadlineExceeded} }
