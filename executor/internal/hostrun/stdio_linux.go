// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/capture"
)

// drainTime bounds the wait for the end of the streams once the tree is dead. Only a descriptor that was passed out of
// the run can use it up.
const drainTime = 500 * time.Millisecond

// Stdio holds both ends of the payload's streams.
type Stdio struct {
	Payload [3]*os.File // the payload's ends, until Started
	Over    chan struct{}

	over     sync.Once
	input    *os.File // our end of stdin; nil if it is empty
	out, err *os.File
	spec     *executor.Spec
	limit    int64

	feeder   *capture.Feeder
	captured [2]*capture.Stream
}

// OpenStdio makes the streams of a run. A payload with another uid must own its pipes, or it could not open /dev/stdout.
func OpenStdio(spec *executor.Spec, limit int64, uid, gid int) (_ *Stdio, err error) {
	s := &Stdio{spec: spec, limit: limit, Over: make(chan struct{})}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if spec.Stdin == nil {
		s.Payload[0], err = os.Open(os.DevNull)
	} else {
		s.Payload[0], s.input, err = os.Pipe()
	}
	if err == nil {
		s.out, s.Payload[1], err = os.Pipe()
	}
	if err == nil {
		s.err, s.Payload[2], err = os.Pipe()
	}
	if err != nil {
		return nil, fmt.Errorf("streams: %w", err)
	}
	if uid < 0 {
		return s, nil
	}
	for i, f := range s.Payload {
		if i == 0 && s.input == nil {
			continue // never change the owner of the host's /dev/null
		}
		if err := f.Chown(uid, gid); err != nil {
			return nil, fmt.Errorf("streams: %w", err)
		}
	}
	return s, nil
}

// Started closes our copies of the payload's ends and begins to drain and feed.
func (s *Stdio) Started() {
	for i, f := range s.Payload {
		if f != nil {
			f.Close()
			s.Payload[i] = nil
		}
	}
	s.captured[0] = s.drain(s.out, s.spec.Stdout)
	s.captured[1] = s.drain(s.err, s.spec.Stderr)
	s.out, s.err = nil, nil
	if s.input != nil {
		s.feeder = capture.Feed(s.input, s.spec.Stdin)
		s.input = nil
	}
}

func (s *Stdio) drain(r *os.File, live io.Writer) *capture.Stream {
	return capture.Start(r, capture.Options{
		Keep: executor.CaptureSize, Limit: s.limit, Live: live,
		OnLimit: func() { s.over.Do(func() { close(s.Over) }) },
	})
}

// Finish stops feeding, waits for the end of the streams and returns what they carried, and whether one was too long.
func (s *Stdio) Finish() (stdout, stderr executor.Output, over [2]bool) {
	if s.feeder != nil {
		_ = s.feeder.Stop() // a reader that failed is the caller's own; the payload saw a short input
		s.feeder = nil
	}
	var outputs [2]executor.Output
	for i, stream := range s.captured {
		if stream == nil {
			continue
		}
		r := stream.Finish(drainTime)
		over[i] = r.Exceeded
		outputs[i] = executor.Output{Head: r.Head, Tail: r.Tail, Total: r.Total, Truncated: r.Truncated, LiveErr: r.LiveErr, Incomplete: r.Incomplete}
		s.captured[i] = nil
	}
	return outputs[0], outputs[1], over
}

// Close releases everything on a path that did not come as far as Finish. It may be called after Finish.
func (s *Stdio) Close() {
	for _, f := range []*os.File{s.Payload[0], s.Payload[1], s.Payload[2], s.input, s.out, s.err} {
		if f != nil {
			f.Close()
		}
	}
	s.Payload, s.input, s.out, s.err = [3]*os.File{}, nil, nil, nil
	s.Finish()
}
