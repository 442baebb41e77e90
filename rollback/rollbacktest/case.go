// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"strings"
	"time"

	"github.com/evoseal/containment/rollback"
)

// Subject is what is tested. *rollback.Store is one. If it is an io.Closer too, it is closed when a case is done with
// it.
type Subject interface {
	Checkpoint(ctx context.Context, tree string, m rollback.Meta) (rollback.Checkpoint, error)
	Restore(ctx context.Context, id rollback.ID, tree string) (*rollback.Restoration, error)
}

// What a subject may offer beyond that.
type (
	// Recoverer finishes what a crash interrupted.
	Recoverer interface {
		Recover(ctx context.Context) ([]rollback.Restoration, error)
	}
	// Planner says what a restore would do.
	Planner interface {
		Plan(ctx context.Context, id rollback.ID, tree string) (*rollback.Restoration, error)
	}
	// Verifier checks a checkpoint, or with the zero ID all of them.
	Verifier interface {
		Verify(ctx context.Context, id rollback.ID) error
	}
	// Pruner deletes what is old and keeps what is pinned.
	Pruner interface {
		Prune(ctx context.Context, r rollback.Retention) (rollback.Pruned, error)
		Pin(ctx context.Context, id rollback.ID, why string) error
	}
	// Lister lists the checkpoints, newest first.
	Lister interface {
		All(ctx context.Context) iter.Seq2[rollback.Checkpoint, error]
	}
)

// Open opens the store in this directory, and makes it if there is none, as rollback.Open does. Nil options are the
// defaults.
type Open func(store string, o *rollback.Options) (Subject, error)

// Feature is a set of the optional interfaces.
type Feature uint8

// One feature per interface.
const (
	Recovers Feature = 1 << iota
	Plans
	Verifies
	Prunes
	Lists

	AllFeatures = Recovers | Plans | Verifies | Prunes | Lists
)

// String names the features, separated by "|".
func (f Feature) String() string {
	names := []string{"Recovers", "Plans", "Verifies", "Prunes", "Lists"}
	var set []string
	for i, name := range names {
		if f&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	return strings.Join(set, "|")
}

// Offers returns which of the optional interfaces a subject has.
func Offers(s Subject) (f Feature) {
	if _, ok := s.(Recoverer); ok {
		f |= Recovers
	}
	if _, ok := s.(Planner); ok {
		f |= Plans
	}
	if _, ok := s.(Verifier); ok {
		f |= Verifies
	}
	if _, ok := s.(Pruner); ok {
		f |= Prunes
	}
	if _, ok := s.(Lister); ok {
		f |= Lists
	}
	return f
}

// Case is one thing that a store must hold.
type Case struct {
	ID   string  // a letter and a number; the design of the suite counts by it
	Name string  // stable, lower case with dashes
	Why  string  // one sentence: what goes wrong with a store that fails it
	Need Feature // beyond Subject

	// Check returns nil if the store holds, else an error that matches ErrBreach or ErrInconclusive. The directory is
	// empty and the case's own; the caller removes it. Not to be called while another check of this process runs.
	Check func(ctx context.Context, open Open, dir string) error
}

// Cases returns every case that one process can decide, grouped by theme, in a fixed order. The slice is the caller's.
func Cases() []Case { return cases() }

// Every case ends by itself within deadline, or the watchdog ends it a little later. The first is generous, because a
// slow machine must not turn into a verdict; the second is for a store that does not heed its context.
const (
	deadline = 60 * time.Second
	grace    = 20 * time.Second
)

// watched runs a check under the deadline and returns even if the check does not.
func watched(ctx context.Context, id string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- survive(ctx, id, check) }()
	select {
	case err := <-done:
		return err
	case <-time.After(deadline + grace):
		return &Breach{Case: id, Detail: fmt.Sprintf("no result %v after its context had ended", grace)}
	}
}

// stop is what a check panics with to end itself: checks read as a list of demands, without an if after each.
type stop struct{ err error }

// survive turns a panic of the store, or of ours, into a failure of this one case.
func survive(ctx context.Context, id string, check func(context.Context) error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case stop:
			err = p.err
		default:
			err = inconclusive(id, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	return check(ctx)
}
