// SPDX-License-Identifier: Apache-2.0

package box

import (
	"fmt"
	"io"
	"os"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
	"github.com/evoseal/containment/internal/capture"
)

// captured is one of the payload's output streams.
type captured struct {
	*capture.Pushed
	limit    int64
	total    int64 // bytes that came; after the result, those that the payload wrote
	complete bool
}

func capturing(live io.Writer, limit int64) *captured {
	return &captured{
		Pushed: capture.Push(capture.Options{Keep: executor.CaptureSize, Limit: limit, Live: live}), limit: limit,
	}
}

// take counts. The box sends one byte more than the limit, never two.
func (c *captured) take(data []byte) error {
	if int64(len(data)) > c.limit+1-c.total {
		return fmt.Errorf("%w: more than %d bytes of output", stream.ErrProtocol, c.limit)
	}
	c.total += int64(len(data))
	_, err := c.Write(data)
	return err
}

// finish ends all traffic with the caller's readers and writers.
func (r *run) finish() {
	close(r.over)
	if r.input != nil {
		r.input.stop()
	}
	outputs := []*executor.Output{&r.end.Stdout, &r.end.Stderr}
	for i, c := range r.captured {
		if c.complete {
			c.End()
		}
		got := c.Finish()
		*outputs[i] = executor.Output{
			Head: got.Head, Tail: got.Tail, Total: c.total, LiveErr: got.LiveErr, Incomplete: got.Incomplete,
			Truncated: c.total > int64(len(got.Head)+len(got.Tail)),
		}
		r.end.Over[i] = got.Exceeded
	}
}

// send says what the host has to say. If that fails the box would wait for the rest.
func (r *run) send() {
	err := r.say()
	if err == nil {
		return
	}
	r.mu.Lock()
	r.unsent = err
	r.mu.Unlock()
	select {
	case <-r.over:
	default:
		_ = r.s.Close()
	}
}

// say sends the job, its trees and its input.
func (r *run) say() error {
	out := r.s.out
	if err := out.Queue(stream.KindJob, r.message); err != nil {
		return err
	}
	close(r.said)
	for _, t := range r.job.Trees {
		err := t.Packed.spool.send(stream.MaxRecord, func(p []byte) error { return out.Queue(stream.KindTree, p) })
		if err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil || r.input == nil {
		return err
	}
	return r.input.send(r)
}

// encode makes the job's record.
func (r *run) encode() error {
	j := r.job
	m := &stream.Job{
		Nonce: r.nonce, Stage: j.Stage, Root: Workspace, Stdin: j.Stdin != nil,
		Wall: j.Limits.Wall, CPU: j.Limits.CPU, Output: j.Limits.Output,
		Patterns: j.Artifacts.Patterns, Exclude: j.Artifacts.Exclude, ExcludeNames: j.Artifacts.ExcludeNames,
		ArtifactBytes: j.Limits.ArtifactBytes, ArtifactFiles: j.Limits.ArtifactFiles,
	}
	for _, t := range j.Trees {
		m.Trees = append(m.Trees, stream.Tree{
			Target: t.Target, MaxBytes: max(t.Packed.stats.Bytes, 1), MaxFiles: t.Packed.Inodes() + 1,
		})
	}
	r.message = stream.Encode(m)
	if len(r.message) > stream.MaxJob {
		err := fmt.Errorf("arguments, environment and patterns have %d bytes, more than %d", len(r.message), stream.MaxJob)
		return &executor.SetupError{Step: "job", Err: err}
	}
	return nil
}

// input is the payload's standard input on its way.
type input struct {
	r      *os.File
	feeder *capture.Feeder
}

func newInput(src io.Reader) (*input, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &input{r: r, feeder: capture.Feed(w, src)}, nil
}

// send sends what the source gives as long as the box gives credit.
func (i *input) send(r *run) error {
	buf := make([]byte, stream.MaxRecord)
	for {
		select {
		case <-r.credit:
		case <-r.over:
			return nil
		}
		n, err := i.r.Read(buf)
		select {
		case <-r.over:
			return nil
		default:
		}
		kind, data := stream.KindStdin, buf[:n]
		if err != nil {
			kind, data = stream.KindStdinEnd, nil
		}
		if e := r.s.out.Send(kind, data); e != nil || err != nil {
			return e
		}
	}
}

// stop never waits for the source.
func (i *input) stop() {
	_ = i.feeder.Stop() // a reader that failed is the caller's own; the payload saw a short input
	_ = i.r.Close()
}
