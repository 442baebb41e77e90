// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/rollback"
)

// Hooks stand in for what a test of the boundary does not want to wait for.
type Hooks struct {
	At    func(point string)
	Now   func() time.Time
	Grace time.Duration
	// Verify, if not nil, stands in for the attacks. Its reports hold until they are revoked.
	Verify  func(ctx context.Context, ex executor.Executor, o *VerifyOptions) (Report, error)
	Current func(ctx context.Context, r Report, ex executor.Executor) error
}

// OpenWith is Open with hooks.
func OpenWith(ctx context.Context, c Config, h Hooks) (*Boundary, error) {
	return openWith(ctx, c, hooks{at: h.At, now: h.Now, grace: h.Grace, verify: h.Verify, current: h.Current})
}

// Believe is a verification that believes every claim.
func Believe(_ context.Context, ex executor.Executor, o *VerifyOptions) (Report, error) {
	caps := ex.Capabilities()
	return Report{Needs: o.Needs, Claimed: caps, Proven: caps}, nil
}

// Patience is how long the first run of an executor under attack may take, with what it costs if it never returns.
func Patience(o *VerifyOptions) time.Duration { return o.patient(firstTime) + endTime }

// RunPatience is how long each other run of the decisive attacks may take.
func RunPatience(o *VerifyOptions) time.Duration { return o.patient(runTime) }

// Begun begins the log of a run with an accepted tree, as if an earlier process had recorded it.
func Begun(dir, runID string, c rollback.Checkpoint) error {
	l, err := OpenLog(dir, runID, nil)
	if err != nil {
		return err
	}
	body := phaseBody{Phase: phaseBaseline}
	body.Checkpoint, body.Content, body.Tree = (&accepted{id: c.ID, digest: c.Digest}).body()
	_, err = l.record(RecordPhase, body, true)
	return errors.Join(err, l.Close())
}

// StillValid says of every report that it holds.
func StillValid(context.Context, Report, executor.Executor) error { return nil }

// Stamp makes a report of which Report.Current finds that it holds, as long as the executor says the same.
func Stamp(r Report, ex executor.Executor) (Report, error) {
	host, err := hostFacts()
	r.Executor, r.Fingerprint, r.Host = typeName(ex), fingerprintOf(ex), host
	r.Started, r.Expires = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	return r, err
}

// Signed makes permits look as if they had been loaded from a file that the loop cannot write.
func Signed[T *Override | *Approval](permit T) T {
	o := origin{path: "/etc/containment/permit.json", digest: digestOf(permit)}
	switch p := any(permit).(type) {
	case *Override:
		p.origin = o
	case *Approval:
		p.origin = o
	}
	return permit
}
