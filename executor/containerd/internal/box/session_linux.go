// SPDX-License-Identifier: Apache-2.0

package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
)

// helloTime bounds the wait for a supervisor that was started.
const helloTime = 30 * time.Second

// Session is the host's end of the stream of one box. It serves one job. Its methods are called one after the other, except
// for Close.
type Session struct {
	toBox   io.WriteCloser
	fromBox io.ReadCloser
	out     *stream.Writer
	in      *stream.Reader
	opened  Open
	state   state
	close   sync.Once
	closed  error
}

type state int

const (
	fresh state = iota
	ready
	used
)

// errState: the methods were not called in their order.
var errState = errors.New("box: a session is opened once and runs one job")

// NewSession takes both streams over. Nothing is read or written yet. Close of both must interrupt a Read or Write that is
// under way, as that of a pipe or FIFO does.
func NewSession(toBox io.WriteCloser, fromBox io.ReadCloser) *Session {
	return &Session{toBox: toBox, fromBox: fromBox, out: stream.NewWriter(toBox), in: stream.NewReader(fromBox)}
}

// Open says the first word and waits for what the supervisor found. An error means that the box is of no use.
func (s *Session) Open(ctx context.Context, o Open) (Hello, error) {
	if s.state != fresh {
		return Hello{}, errState
	}
	s.state = used
	ctx, cancel := context.WithTimeoutCause(ctx, helloTime, errors.New("the supervisor does not answer"))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	message := &stream.Open{
		Version: stream.Version, Idle: o.Idle, Hard: o.Hard, Dirs: o.Dirs, Volumes: o.Volumes, UID: UID, GID: GID,
	}
	var hello Hello
	err := s.out.Send(stream.KindOpen, stream.Encode(message))
	if err == nil {
		err = s.hello(&hello)
	}
	switch {
	case err == nil:
		s.opened, s.state = o, ready
		return hello, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return Hello{}, fmt.Errorf("box: open: %w", err)
}

func (s *Session) hello(h *Hello) error {
	kind, data, err := s.in.Next()
	switch {
	case err == io.EOF:
		return fmt.Errorf("the supervisor ended: %w", err)
	case err != nil:
		return err
	case kind != stream.KindHello:
		return fmt.Errorf("%w: kind %d in place of hello", stream.ErrProtocol, kind)
	}
	if err := stream.Decode(data, h); err != nil {
		return err
	}
	if h.Version != stream.Version {
		return fmt.Errorf("%w: the supervisor speaks version %d of the protocol, this program %d; install the one that "+
			"belongs to it", stream.ErrProtocol, h.Version, stream.Version)
	}
	return nil
}

// Exit tells the supervisor that it may end, with status 0. Call it after the last figures of the box were read.
func (s *Session) Exit() error { return s.out.Send(stream.KindExit, nil) }

// Close closes both streams; whatever waits for them returns. It may be called at any time, more than once.
func (s *Session) Close() error {
	s.close.Do(func() { s.closed = errors.Join(s.toBox.Close(), s.fromBox.Close()) })
	return s.closed
}
