// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// jobVariable tells a test binary that it is a worker, and what its job is.
const jobVariable = "CONTAINMENT_ROLLBACKTEST_JOB"

// job is what a worker does until it is killed, or once.
type job struct {
	Kind        string // a key of jobs, or "case"
	Store, Tree string
	Options     rollback.Options
	IDs         []rollback.ID
	Limit       uint64 // RLIMIT_FSIZE, bytes; 0: none
	Case        string // ID of the case to run in the worker
}

// enough is closed in a worker when it has been told to end by itself.
var enough = make(chan struct{})

// jobs are what a worker can do. Each prints a line when it has done something, and goes on.
var jobs = map[string]func(context.Context, job, Subject) error{
	// The tree becomes one of two states, again and again.
	"restores": func(ctx context.Context, j job, s Subject) error {
		for i := 0; ; i++ {
			if _, err := s.Restore(ctx, j.IDs[i%len(j.IDs)], j.Tree); err != nil {
				return err
			}
			fmt.Println("restored")
		}
	},
	// The same, until it is told to end.
	"restores a while": func(ctx context.Context, j job, s Subject) error {
		for {
			for _, id := range j.IDs {
				if _, err := s.Restore(ctx, id, j.Tree); err != nil {
					return err
				}
			}
			fmt.Println("restored")
			select {
			case <-enough:
				return nil
			default:
			}
		}
	},
	// A file counts, and each number is a checkpoint.
	"checkpoints": func(ctx context.Context, j job, s Subject) error {
		for i := 0; ; i++ {
			if err := os.WriteFile(j.Tree+"/count", fmt.Append(nil, "number ", i), 0o644); err != nil {
				return err
			}
			c, err := s.Checkpoint(ctx, j.Tree, rollback.Meta{})
			if err != nil {
				return err
			}
			fmt.Println(c.ID, i)
		}
	},
	"prunes": func(ctx context.Context, j job, s Subject) error {
		for i := 0; ; i++ {
			if err := os.WriteFile(j.Tree+"/count", fmt.Append(nil, "number ", i), 0o644); err != nil {
				return err
			}
			if _, err := s.Checkpoint(ctx, j.Tree, rollback.Meta{}); err != nil {
				return err
			}
			if _, err := s.(Pruner).Prune(ctx, rollback.Retention{User: 1, Safety: 1}); err != nil {
				return err
			}
			fmt.Println("pruned")
		}
	},
	"verifies": func(ctx context.Context, _ job, s Subject) error {
		for {
			if err := s.(Verifier).Verify(ctx, rollback.ID{}); err != nil {
				return err
			}
			fmt.Println("verified")
		}
	},
	"restore once": func(ctx context.Context, j job, s Subject) error {
		_, err := s.Restore(ctx, j.IDs[0], j.Tree)
		return err
	},
	"checkpoint once": func(ctx context.Context, j job, s Subject) error {
		_, err := s.Checkpoint(ctx, j.Tree, rollback.Meta{})
		return err
	},
}

// The ways in which a worker ends by itself.
const (
	exitFailed       = 3
	exitBreach       = 4
	exitInconclusive = 5
)

// working does the job of a worker and ends the process. In any other process it returns false.
func working(t *testing.T, open Open) bool {
	t.Helper()
	text := os.Getenv(jobVariable)
	if text == "" {
		return false
	}
	go func() { // a worker does not outlive who started it
		if _, err := os.Stdin.Read(make([]byte, 1)); err == nil {
			close(enough)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(exitInconclusive)
	}()
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		t.Fatal(err)
	}
	err := work1(t.Context(), j, open)
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, err)
	switch {
	case errors.Is(err, ErrBreach):
		os.Exit(exitBreach)
	case errors.Is(err, ErrInconclusive):
		os.Exit(exitInconclusive)
	}
	os.Exit(exitFailed)
	return true
}

func work1(ctx context.Context, j job, open Open) error {
	if j.Kind == "case" {
		for _, c := range childCases() {
			if c.ID == j.Case {
				return c.Check(ctx, open, j.Tree)
			}
		}
	}
	do, known := jobs[j.Kind]
	if !known {
		return inconclusive(j.Case, fmt.Errorf("no job %q, case %q", j.Kind, j.Case))
	}
	s, err := open(j.Store, &j.Options)
	if err != nil {
		return err
	}
	if j.Limit > 0 {
		signal.Ignore(unix.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: j.Limit, Max: j.Limit}); err != nil {
			return inconclusive(j.Case, err)
		}
	}
	return do(ctx, j, s)
}

// worker is a started child.
type worker struct {
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr strings.Builder
	stdin  io.WriteCloser
}

// starter starts the calling test once more.
type starter struct{ test string }

// start runs a job in a child with these attributes.
func (st starter) start(j job, attr *syscall.SysProcAttr) (*worker, error) {
	j.Options.Logger = nil
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	var pattern []string
	for part := range strings.SplitSeq(st.test, "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	w := &worker{cmd: exec.Command("/proc/self/exe", "-test.run="+strings.Join(pattern, "/"), "-test.timeout=5m")}
	w.cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	w.cmd.SysProcAttr, w.cmd.Stderr, w.cmd.WaitDelay = attr, &w.stderr, 5*time.Second
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	w.lines = bufio.NewScanner(out)
	return w, w.cmd.Start()
}

// together lets workers do their jobs at the same time and then end. When all are at work they do so a number of times
// together, and each at least once: a lock is not always fair.
func together(times int64, workers ...*worker) error {
	var left atomic.Int64
	left.Store(times)
	var begun, ready sync.WaitGroup
	done := make(chan error, len(workers))
	begun.Add(len(workers))
	ready.Add(len(workers))
	for _, w := range workers {
		go func() {
			w.lines.Scan()
			begun.Done()
			begun.Wait()
			for w.lines.Scan() && left.Add(-1) > 0 {
				continue
			}
			ready.Done()
			ready.Wait() // the others are not left alone before they are done
			_, err := w.stdin.Write([]byte("."))
			done <- errors.Join(w.wait(), err)
		}()
	}
	var all []error
	for range workers {
		all = append(all, <-done)
	}
	return errors.Join(all...)
}

// wait returns what the worker said of its end.
func (w *worker) wait() error {
	for w.lines.Scan() {
		continue // so that it does not block
	}
	err := w.cmd.Wait()
	if err != nil {
		return fmt.Errorf("worker: %w: %s", err, strings.TrimSpace(w.stderr.String()))
	}
	return nil
}

// kill lets the worker do its job twice and kills it at a random moment of the next two times, however long one takes
// on this machine. It returns the lines that it had printed.
func (w *worker) kill() (lines []string, err error) {
	var begin time.Time
	for range 2 {
		begin = time.Now()
		if !w.lines.Scan() {
			return nil, fmt.Errorf("the worker did nothing: %w", w.wait())
		}
		lines = append(lines, w.lines.Text())
	}
	timer := time.AfterFunc(rand.N(2*time.Since(begin)), func() { _ = w.cmd.Process.Kill() })
	defer timer.Stop()
	for w.lines.Scan() {
		lines = append(lines, w.lines.Text())
	}
	if err = w.cmd.Wait(); w.cmd.ProcessState.ExitCode() != -1 {
		return lines, fmt.Errorf("the worker ended by itself: %w: %s", err, strings.TrimSpace(w.stderr.String()))
	}
	return lines, nil
}
