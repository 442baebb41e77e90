// SPDX-License-Identifier: Apache-2.0

package crashtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// childVariable makes the test binary a worker.
const childVariable = "CONTAINMENT_CRASHTEST"

// order is what a worker does until it is killed.
type order struct {
	Store, Tree string
	Sync        rollback.SyncMode
	States      []rollback.ID // to restore, one after the other; none: checkpoints of a file that counts
	From        int           // the state that stands
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		go func() { // it does not outlive who started it
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1) // a worker is killed, or something is wrong
	}
	os.Exit(m.Run())
}

func options(sync rollback.SyncMode) *rollback.Options {
	return &rollback.Options{Sync: sync, Exclude: []string{"cache"}}
}

// work reports what is done only when the call has returned.
func work(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := rollback.Open(o.Store, options(o.Sync))
	if err != nil {
		return err
	}
	for i := 1; ; i++ {
		if len(o.States) > 0 {
			at := (o.From + i) % len(o.States)
			if _, err := s.Restore(ctx, o.States[at], o.Tree); err != nil {
				return err
			}
			fmt.Println("restored", at)
			continue
		}
		for _, name := range []string{"/count", fmt.Sprint("/counted-", i%7)} {
			if err := os.WriteFile(o.Tree+name, fmt.Append(nil, "number ", i), 0o644); err != nil {
				return err
			}
		}
		c, err := s.Checkpoint(ctx, o.Tree, rollback.Meta{})
		if err != nil {
			return err
		}
		fmt.Println(c.ID, i)
	}
}

// worker is a started one.
type worker struct {
	cmd   *exec.Cmd
	lines chan string
	stdin io.Closer
}

func start(t *testing.T, o order) *worker {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{cmd: exec.Command("/proc/self/exe"), lines: make(chan string, 1<<16)}
	w.cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.lines <- lines.Text()
		}
	}()
	return w
}

// moment lets the worker make two calls and returns at a random moment of the next two, however long one takes on this
// machine, with what was reported.
func (w *worker) moment(t *testing.T) []string {
	t.Helper()
	first := w.next(t)
	begin := time.Now()
	second := w.next(t)
	time.Sleep(rand.N(2 * time.Since(begin)))
	return []string{first, second}
}

// next waits for a report.
func (w *worker) next(t *testing.T) string {
	t.Helper()
	select {
	case line, ok := <-w.lines:
		if !ok {
			_ = w.cmd.Wait()
			t.Fatal("the worker has ended by itself")
		}
		return line
	case <-time.After(30 * time.Second):
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
		t.Fatal("the worker does nothing")
	}
	return ""
}

// drain returns what was reported by now.
func (w *worker) drain() (lines []string) {
	for {
		select {
		case line, ok := <-w.lines:
			if !ok {
				return lines
			}
			lines = append(lines, line)
		default:
			return lines
		}
	}
}

// kill ends the worker and returns what it reported since.
func (w *worker) kill() (lines []string) {
	_ = w.cmd.Process.Signal(unix.SIGKILL)
	for line := range w.lines {
		lines = append(lines, line)
	}
	_ = w.cmd.Wait()
	return lines
}
