// SPDX-License-Identifier: Apache-2.0

package box

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"syscall"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
	"github.com/evoseal/containment/executor/internal/artifact"
)

// Deadlines of the phases. The supervisor has shorter ones of its own; these are for one that does not answer.
const (
	setupTime   = 5 * time.Minute  // until the payload runs: mostly the transfer of the workspace
	runGrace    = 10 * time.Second // beyond the wall limit, until the result
	cancelGrace = 10 * time.Second // from cancel to the result
	extractTime = 90 * time.Second // for artifacts
	longest     = 1 << 62          // of a wall limit, so that it can be added to
	sendGrace   = time.Second      // for a word that nobody takes, after the end
)

// Run runs the job and returns when the box has told everything, artifacts included, and nothing of the payload is alive.
//
// An error is an *executor.SetupError if the payload was not started for a reason of ours (failed steps of the stage are in
// Ending.Failed instead, see hostrun.SetupError), or matches executor.ErrLost if the stream ended too early, took too
// long or broke its rules: then Ending holds what is known, the captured output above all. When ctx is done the box is
// told to kill the payload, and Ending.Host is CauseCancelled.
func (s *Session) Run(ctx context.Context, job Job) (Ending, error) {
	if s.state != ready {
		return Ending{}, errState
	}
	s.state = used
	r, err := newRun(s, &job)
	if err != nil {
		return Ending{}, err
	}
	stop := context.AfterFunc(ctx, r.cancel)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		r.send()
	}()
	err = r.receive(ctx)
	stop()
	r.settle()
	r.finish()
	if err != nil && !errors.As(err, new(*executor.SetupError)) && !errors.Is(err, errArtifacts) {
		_ = s.Close() // what is left on the stream means nothing
		err = r.lost(err)
	}
	select {
	case <-sent:
	case <-time.After(sendGrace):
		_ = s.Close()
		<-sent
	}
	return r.end, err
}

// run is one run as the host sees it.
type run struct {
	s       *Session
	job     *Job
	nonce   [stream.NonceSize]byte
	message []byte // the job's record
	began   time.Time
	end     Ending
	phase   phase

	captured [2]*captured
	credit   chan struct{}
	over     chan struct{} // closed when nothing more is to be sent
	said     chan struct{} // closed when the job is on its way
	input    *input

	guard     *time.Timer
	mu        sync.Mutex // guards what follows
	settled   bool       // nothing is waited for any more
	cancelled bool
	late      bool
	unsent    error // what the host had to say could not be read, or not be said
}

// phase is what may come next.
type phase int

const (
	starting phase = iota
	running
	ended     // the result is there
	completed // the end came
)

func newRun(s *Session, job *Job) (*run, error) {
	job.Limits.Output = min(job.Limits.Output, math.MaxInt64-1) // one byte more is counted
	r := &run{
		s: s, job: job, began: time.Now(), over: make(chan struct{}), said: make(chan struct{}),
		credit: make(chan struct{}, stream.InitialCredit),
	}
	for range stream.InitialCredit {
		r.credit <- struct{}{}
	}
	_, _ = rand.Read(r.nonce[:]) // never fails
	if err := r.encode(); err != nil {
		return nil, err
	}
	if job.Stdin != nil {
		var err error
		if r.input, err = newInput(job.Stdin); err != nil {
			return nil, &executor.SetupError{Step: "streams", Err: err}
		}
	}
	r.captured = [2]*captured{capturing(job.Stdout, job.Limits.Output), capturing(job.Stderr, job.Limits.Output)}
	r.guard = time.AfterFunc(setupTime, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.settled {
			r.late = true
			_ = s.Close()
		}
	})
	return r, nil
}

// limit is the time for the phase that begins. A cancelled run has what is left of its grace.
func (r *run) limit(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.cancelled {
		r.guard.Reset(d)
	}
}

// settle ends the deadlines.
func (r *run) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = true
	r.guard.Stop()
}

// cancel tells the box to end the run.
func (r *run) cancel() {
	r.mu.Lock()
	if !r.settled {
		r.cancelled = true
		r.guard.Reset(cancelGrace)
	}
	r.mu.Unlock()
	select {
	case <-r.said: // it means nothing before the job
	case <-r.over:
		return
	}
	_ = r.s.out.Send(stream.KindCancel, nil) // a stream that does not take it ends by the guard
}

// spentPeriod is the time between two questions.
const spentPeriod = 100 * time.Millisecond

// watchSpent tells the box that the CPU time is used up.
func (r *run) watchSpent() {
	tick := time.NewTicker(spentPeriod)
	defer tick.Stop()
	for {
		select {
		case <-r.over:
			return
		case <-tick.C:
		}
		if r.job.Spent() {
			_ = r.s.out.Send(stream.KindSpent, nil) // a stream that does not take it ends by the guard
			return
		}
	}
}

func (r *run) wasCancelled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cancelled
}

// lost words an error after which there is no verdict.
func (r *run) lost(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.unsent != nil:
		return fmt.Errorf("%w: send: %w (%w)", executor.ErrLost, r.unsent, err)
	case r.late:
		return fmt.Errorf("%w: the box did not answer in time", executor.ErrLost)
	case err == io.EOF:
		return fmt.Errorf("%w: the box ended before its run was over", executor.ErrLost)
	}
	return fmt.Errorf("%w: %w", executor.ErrLost, err)
}

// receive reads the box's words until its end.
func (r *run) receive(ctx context.Context) error {
	for {
		kind, data, err := r.s.in.Next()
		if err == nil {
			err = r.record(ctx, kind, data)
		}
		if err != nil || r.phase == completed {
			return err
		}
	}
}

// errArtifacts: they could not be written here. The box is not to blame.
var errArtifacts = errors.New("box: artifacts")

// setupFailed is the box's word that the payload was not started.
func setupFailed(data []byte) (*executor.SetupError, error) {
	var m stream.Refused
	if err := stream.Decode(data, &m); err != nil {
		return nil, err
	}
	e := &executor.SetupError{Step: clean(m.Step), Err: errors.New(clean(m.Text))}
	if m.Errno != 0 {
		e.Err = fmt.Errorf("%s (%w)", clean(m.Text), syscall.Errno(m.Errno))
	}
	return e, nil
}

// record takes one word, if it may come now.
func (r *run) record(ctx context.Context, kind stream.Kind, data []byte) error {
	switch {
	case r.phase == starting && kind == stream.KindRefused:
		return r.refused(data)
	case r.phase == starting && kind == stream.KindStarted:
		r.phase, r.end.Started = running, time.Now()
		r.limit(min(r.job.Limits.Wall, longest) + runGrace)
		if r.job.Spent != nil {
			go r.watchSpent()
		}
		return nil
	case r.phase == running && (kind == stream.KindStdout || kind == stream.KindStderr):
		return r.captured[kind-stream.KindStdout].take(data)
	case r.phase == running && kind == stream.KindCredit:
		select {
		case r.credit <- struct{}{}:
			return nil
		default: // for input that was never sent
		}
	case (r.phase == starting || r.phase == running) && kind == stream.KindResult:
		return r.result(ctx, data)
	case r.phase == ended && kind == stream.KindEnd && string(data) == string(r.nonce[:]):
		r.phase = completed
		return nil
	}
	return fmt.Errorf("%w: kind %d in phase %d", stream.ErrProtocol, kind, r.phase)
}

// refused returns the reason as an error, after the end that follows. A cancelled run has none.
func (r *run) refused(data []byte) error {
	why, err := setupFailed(data)
	if err != nil {
		return err
	}
	kind, nonce, err := r.s.in.Next()
	if err != nil {
		return err
	}
	if kind != stream.KindEnd || string(nonce) != string(r.nonce[:]) {
		return fmt.Errorf("%w: kind %d after a refusal", stream.ErrProtocol, kind)
	}
	r.phase = completed
	if r.wasCancelled() {
		r.end.Host = executor.CauseCancelled
		return nil
	}
	return why
}

// result takes how the payload ended, and then its artifacts.
func (r *run) result(ctx context.Context, data []byte) error {
	var m stream.Result
	if err := stream.Decode(data, &m); err != nil {
		return err
	}
	if err := r.believe(&m); err != nil {
		return err
	}
	r.phase = ended
	if r.job.Ended != nil {
		r.job.Ended()
	}
	r.limit(extractTime)
	if len(r.job.Artifacts.Patterns) == 0 || r.end.Failed != nil {
		return nil
	}
	return r.artifacts(ctx)
}

func (r *run) artifacts(ctx context.Context) (err error) {
	a, l := &r.job.Artifacts, &r.job.Limits
	// A cancelled caller still gets what the run left; the time for it is ours.
	r.end.Artifacts, r.end.Refused, err = artifact.Receive(context.WithoutCancel(ctx), artifact.Request{
		ID: a.ID, Patterns: a.Patterns, Dest: a.Dest, Exclude: a.Exclude, ExcludeNames: a.ExcludeNames,
		MaxBytes: l.ArtifactBytes, MaxFiles: l.ArtifactFiles,
	}, &artifactReader{in: r.s.in})
	if err != nil && !errors.Is(err, artifact.ErrStream) && !errors.Is(err, stream.ErrProtocol) {
		err = fmt.Errorf("%w: %w", errArtifacts, err)
	}
	return err
}

// artifactReader is the data of records of artifacts in a row.
type artifactReader struct {
	in   *stream.Reader
	data []byte
}

func (a *artifactReader) Read(p []byte) (int, error) {
	for len(a.data) == 0 {
		kind, data, err := a.in.Next()
		if err != nil {
			return 0, fmt.Errorf("%w: %w", stream.ErrProtocol, err)
		}
		if kind != stream.KindArtifact {
			return 0, fmt.Errorf("%w: kind %d among artifacts", stream.ErrProtocol, kind)
		}
		a.data = data
	}
	n := copy(p, a.data)
	a.data = a.data[n:]
	return n, nil
}
