// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

const (
	feedBuffer = 32 << 10
	maxEmpty   = 100 // reads in a row that return nothing, before the reader is taken for broken
)

// Feeder copies a reader into a pipe.
type Feeder struct {
	w *os.File

	mu  sync.Mutex // guards err
	err error
}

// Feed begins to copy src to w, the write end of a pipe, and owns w from now on: it is closed after the last byte, so
// that the process on the other side sees the end of its input.
func Feed(w *os.File, src io.Reader) *Feeder {
	f := &Feeder{w: w}
	go f.run(src)
	return f
}

// Stop closes the pipe, which ends a copy that is blocked in writing, and returns why src could not be read, if that has
// happened. It never waits for src: a goroutine that is blocked in src.Read ends when that call returns, and what it
// returns is dropped. A process that did not read all of its input is no error. Stop may be called more than once.
func (f *Feeder) Stop() error {
	_ = f.w.Close() // an *os.File may be closed twice; the second time has no effect
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// run copies; src is foreign code, so a panic in it becomes an error.
func (f *Feeder) run(src io.Reader) {
	defer func() { _ = f.w.Close() }()
	err := errors.New("capture: the reader ended its goroutine")
	defer func() {
		if v := recover(); v != nil {
			err = panicError("the reader panicked", v)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.err = err
	}()
	err = f.copy(src)
}

// copy returns what src failed with. A failed write means that nobody reads any more, or that Stop was called: the
// payload decides how much of its input it wants.
func (f *Feeder) copy(src io.Reader) error {
	buf := make([]byte, feedBuffer)
	for empty := 0; empty < maxEmpty; empty++ {
		n, err := src.Read(buf)
		if n > 0 {
			empty = 0
			if _, werr := f.w.Write(buf[:n]); werr != nil {
				return writeError(werr)
			}
		}
		switch {
		case err == io.EOF: // a wrapped one is not the end but somebody's failure
			return nil
		case err != nil:
			return fmt.Errorf("capture: input: %w", err)
		}
	}
	return fmt.Errorf("capture: input: %w", io.ErrNoProgress)
}

func writeError(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return fmt.Errorf("capture: input: %w", err)
}
