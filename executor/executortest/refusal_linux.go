// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/evoseal/containment/executor"
)

// refusal checks that an executor which does not promise a case's needs refuses a run that requires them.
func refusal(c Case) func(context.Context, executor.Executor) error {
	return func(ctx context.Context, ex executor.Executor) error {
		return watched(ctx, c.Name, func(ctx context.Context) error {
			if err := controlled(ctx, "witness", control{}, witnessed); err != nil {
				return err
			}
			return attempt(ctx, c.Name, ex, false, func(s *scene) error {
				return s.mustRefuse(s.spec("witness", job{}), c.Needs)
			})
		})
	}
}

// witnessed succeeds if the witness leaves evidence where it is not stopped; it is the control of every refusal.
func witnessed(s *scene) error {
	w, err := s.witness()
	if err != nil {
		return err
	}
	spec := s.spec("witness", job{})
	w.watch(&spec)
	if _, err := s.run(spec); err != nil {
		return err
	}
	return w.left()
}

// mustRefuse demands ErrUnsupported, no result and no trace of a start.
func (s *scene) mustRefuse(spec executor.Spec, require executor.Capability) error {
	spec.Require = require
	res, err, trace := s.witnessRun(spec)
	switch {
	case trace != nil:
		return trace
	case err == nil:
		return s.breach("a run that requires %v was not refused, though only %v is promised", require, s.ex.Capabilities())
	case res != nil:
		return s.breach("a refused run has a result")
	case !errors.Is(err, executor.ErrUnsupported) || !errors.Is(err, errors.ErrUnsupported):
		return s.breach("the refusal does not match executor.ErrUnsupported: %v", err)
	}
	return nil
}

// mustNotStart demands an error without a result and without a trace of a start, and returns the error.
func (s *scene) mustNotStart(spec executor.Spec) (refused, verdict error) {
	res, err, trace := s.witnessRun(spec)
	switch {
	case trace != nil:
		return err, trace
	case err == nil:
		return nil, s.breach("Run did not fail: %s", describe(res))
	case res != nil:
		return err, s.breach("Run failed with a result beside the error: %v", err)
	}
	return err, nil
}

// witnessRun runs a specification and reports a breach as trace if anything was started.
func (s *scene) witnessRun(spec executor.Spec) (res *executor.Result, err, trace error) {
	w, err := s.witness()
	if err != nil {
		return nil, nil, err
	}
	if len(spec.Args) > 0 {
		spec = w.arm(spec)
	}
	res, err = s.ex.Run(s.ctx, spec)
	if err == nil {
		return res, nil, nil // the caller wants an error; a start is no news
	}
	return res, err, w.left()
}

// witness collects evidence of a start in every way that some executor leaves open: a file in an open directory, a
// connection to a listener, live output, a process.
type witness struct {
	s        *scene
	dir      string
	listener net.Listener
	accepted atomic.Int64
	live     liveBuffer
}

// witness opens everything that a start could touch.
func (s *scene) witness() (*witness, error) {
	w := &witness{s: s}
	var err error
	if w.dir, err = s.mkdir("witness", 0o777); err != nil {
		return nil, s.fault(err)
	}
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, s.fault(err)
	}
	s.later(func() { _ = w.listener.Close() })
	go func() {
		for {
			conn, err := w.listener.Accept()
			if err != nil {
				return
			}
			w.accepted.Add(1)
			_ = conn.Close()
		}
	}()
	return w, nil
}

// arm makes the run the witness, and keeps whatever else the specification says.
func (w *witness) arm(spec executor.Spec) executor.Spec {
	plain := w.s.spec("witness", job{})
	spec.Args = plain.Args
	w.watch(&spec)
	return spec
}

// watch tells the payload where to leave its evidence.
func (w *witness) watch(spec *executor.Spec) {
	j := job{Paths: []string{filepath.Join(w.dir, "started")}, Text: w.listener.Addr().String()}
	spec.Stdin = bytes.NewReader(w.s.jobLine(j))
	spec.Stdout = &w.live
}

// left reports the first trace of a start.
func (w *witness) left() error {
	switch {
	case exists(filepath.Join(w.dir, "started")):
		return w.s.breach("the command was started: it made a file on the host")
	case w.accepted.Load() > 0:
		return w.s.breach("the command was started: it reached a listener")
	case len(w.live.Bytes()) > 0:
		return w.s.breach("the command was started: live output %q", w.live.Bytes())
	}
	return w.s.noneLeft()
}

// witnessPayload leaves as much evidence as it can, in every way that is open to it.
func witnessPayload(p *payload) {
	p.reached()
	for _, path := range p.job.Paths {
		_ = os.WriteFile(path, []byte(p.job.Nonce), 0o666)
	}
	if conn, err := net.Dial("tcp", p.job.Text); err == nil {
		_, _ = fmt.Fprintln(conn, p.job.Nonce)
		_ = conn.Close()
	}
}
