// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"
)

// Options say how a run is watched. A nil *Options has all defaults.
type Options struct {
	Metered   Meter        // which fields of Usage the host promises to report
	KillFile  string       // "": "STOP" in the directory of the store; a Store without one needs a name here
	PauseFile string       // "": "PAUSE" there, or none if there is no directory
	Tree      string       // what variants may change: state and files inside it are refused; "": not checked
	MustExist bool         // the run must have been opened before; otherwise ErrNoState
	Amendment *Amendment   // raises a limit, or lifts a stop
	Observer  Observer     // nil: none
	Logger    *slog.Logger // gets what SlogObserver writes; nil: none
}

// Open begins or goes on with a run. The run id is one of letters, digits and "-_.", at most 128 bytes; all that was
// spent and counted belongs to it. The governor closes the store.
//
// Iterations that were open when the process died have failed, and are charged at least what they had reserved. A run
// that stopped gives its *StopError again, and limits that allow more than those recorded give ErrLimitsLoosened,
// unless an amendment says otherwise. Everything that is wrong with the arguments is reported at once in a
// *ConfigError. Other errors are those of the store: ErrStateLocked, ErrStateCorrupt, ErrNoState.
func Open(ctx context.Context, runID string, l Limits, s Store, o *Options) (*Governor, error) {
	if s == nil {
		return nil, &ConfigError{[]error{fmt.Errorf("%w: no store; use FileStore", ErrInvalidOptions)}}
	}
	opts := Options{}
	if o != nil {
		opts = *o
	}
	r := &run{
		store: s, meter: opts.Metered, snapEvery: snapshotEvery, ledger: ledger{RunID: runID},
		wake: make(chan struct{}, 1), quit: make(chan struct{}), watched: make(chan struct{}),
	}
	if err := r.check(l, &opts); err != nil {
		return nil, err
	}
	isNew, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	if isNew && opts.MustExist {
		err = fmt.Errorf("%w: %q", ErrNoState, runID)
	} else {
		err = r.resume(l.withDefaults(), &opts)
	}
	if r.broken != nil { // the run has not stopped: it could not be opened
		err = fmt.Errorf("runaway: run %q: %w", runID, r.broken.Err)
	}
	if err != nil {
		if closeErr := s.Close(); closeErr != nil {
			return nil, fmt.Errorf("%w; closing the store: %w", err, closeErr)
		}
		return nil, err
	}
	r.start(l, &opts)
	return &Governor{run: r, scope: r.root()}, nil
}

// check looks at the arguments. It creates nothing.
func (r *run) check(l Limits, o *Options) error {
	problems := l.check(o.Metered)
	invalid := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%w: %s", ErrInvalidOptions, fmt.Sprintf(format, args...)))
	}
	if !validName(r.RunID, maxRunID) {
		invalid("run id %q: it is 1 to %d letters, digits and \"-_.\", and does not begin with a dot", r.RunID,
			maxRunID)
	}
	if o.Metered&^MeterAll != 0 {
		invalid("Metered: there is no meter %#x", o.Metered&^MeterAll)
	}
	if a := o.Amendment; a != nil {
		if err := checkApproval(a.By, a.Reason); err != nil {
			problems = append(problems, fmt.Errorf("Amendment: %w", err))
		}
		if a.Lift != 0 && !a.Lift.known() {
			invalid("Amendment.Lift: %v", a.Lift)
		}
	}
	if located, ok := r.store.(Located); ok {
		if err := outside(o.Tree, located.Dir()); err != nil {
			problems = append(problems, err)
		}
	} else if _, isMem := r.store.(*memStore); !isMem && o.KillFile == "" {
		invalid("KillFile: this store has no directory to look in; name a file")
	}
	for file, path := range map[*string]string{&r.files.kill: o.KillFile, &r.files.pause: o.PauseFile} {
		if path == "" {
			continue
		}
		if err := r.files.watch(file, path, o.Tree); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &ConfigError{problems}
}

// load reads what happened before, and says whether nothing did.
func (r *run) load(ctx context.Context) (isNew bool, err error) {
	err = r.store.Load(ctx, r.RunID, func(rec *Record) error {
		if r.sinceSnap++; rec.Op == OpSnapshot {
			r.sinceSnap = 0
		}
		return r.apply(rec)
	})
	if errors.Is(err, ErrNoState) {
		return true, nil
	}
	return false, err
}

// resume decides whether the run may go on with these limits, and records that it does.
func (r *run) resume(l Limits, o *Options) error {
	now := time.Now()
	r.clock.begin(now, r.Active+r.unrecorded(now))
	if len(r.Scopes) > 0 {
		if err := r.amend(l, o.Amendment); err != nil {
			return err
		}
	}
	if err := r.commit(&Record{Op: OpOpen, Limits: &l}, true); err != nil {
		return err
	}
	r.retime()
	if r.snapshot(); r.broken != nil {
		return r.broken
	}
	return r.watchDefaults(o)
}

// watchDefaults finds the files that Options does not name. The directory of the store exists only now.
func (r *run) watchDefaults(o *Options) error {
	located, ok := r.store.(Located)
	if !ok {
		return nil
	}
	for _, f := range []struct {
		named, name string
		file        *string
	}{{o.KillFile, DefaultKillFile, &r.files.kill}, {o.PauseFile, DefaultPauseFile, &r.files.pause}} {
		if f.named != "" {
			continue
		}
		if err := r.files.watch(f.file, filepath.Join(located.Dir(), f.name), o.Tree); err != nil {
			return &ConfigError{[]error{err}}
		}
	}
	return nil
}

// amend holds limits and stop against what is recorded, and uses the amendment if one is needed.
func (r *run) amend(l Limits, a *Amendment) error {
	root := r.root()
	loosened := l.looser(root.Limits)
	lifted := a != nil && root.Stop != nil && a.Lift == root.Stop.Reason
	switch {
	case root.Stop == nil && len(loosened) == 0:
		return nil
	case root.Stop != nil && !lifted:
		return root.Stop
	case a == nil:
		return fmt.Errorf("%w: run %q: %q; give back the old limits, or open it with an Amendment", ErrLimitsLoosened,
			r.RunID, loosened)
	case slices.Contains(r.Amended, amendmentKey(a.By, a.Reason, a.Lift)):
		if root.Stop != nil {
			return root.Stop
		}
		return fmt.Errorf("%w: run %q: %q; the amendment by %q was used before, and serves once", ErrLimitsLoosened,
			r.RunID, loosened, a.By)
	}
	return r.commit(&Record{Op: OpAmend, By: a.By, Detail: a.Reason, Reason: a.Lift, Limits: &l}, true)
}

// start sets everything in motion. Nothing can fail any more.
func (r *run) start(l Limits, o *Options) {
	var observers []Observer
	if o.Observer != nil {
		observers = append(observers, o.Observer)
	}
	if o.Logger != nil {
		observers = append(observers, SlogObserver(o.Logger))
	}
	r.lock()
	defer r.unlock()
	root := r.root()
	if len(observers) > 0 {
		r.out = newOutbox(observers...)
	}
	r.emit(Event{Kind: EventOpened, Iteration: root.Begun, Usage: root.Spent.usage()})
	if root.Limits.Iterations > root.Limits.MaxIterations {
		r.emit(Event{Kind: EventClamped, Budget: "iterations",
			Detail: fmt.Sprintf("%d were asked for, %d is the cap", l.Iterations, root.Limits.MaxIterations)})
	}
	if a := o.Amendment; a != nil && slices.Contains(r.Amended, amendmentKey(a.By, a.Reason, a.Lift)) {
		r.emit(Event{Kind: EventAmended, Reason: a.Lift, By: a.By, Detail: a.Reason})
	}
	go r.watch()
}
