// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
)

// output is a live copy that tells when something is in it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) wait(t *testing.T, word string) {
	t.Helper()
	for range 1000 {
		o.mu.Lock()
		seen := strings.Contains(o.text.String(), word)
		o.mu.Unlock()
		if seen {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the run did not say %q", word)
}

// A daemon that is killed and started again in the middle of a run loses nothing: the streams do not go through it.
func TestDaemonRestart(t *testing.T) {
	t.Parallel()
	d, at := ownDaemon(t)
	ex := at.open(t, containerd.Config{Root: containerd.Root{Reads: hostReads}})
	var live output
	done := make(chan error, 1)
	go func() {
		spec := executor.Spec{Args: []string{"sh", "-c", "echo a; sleep 2; echo b; exit 5"}, Workspace: t.TempDir(),
			Stdout: &live}
		result, err := ex.Run(t.Context(), spec)
		if err == nil && (result.ExitCode != 5 || result.Stdout.String() != "a\nb\n") {
			err = fmt.Errorf("%+v", result)
		}
		done <- err
	}()
	live.wait(t, "a")
	d.Kill()
	if err := d.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := ex.Close(); err != nil {
		t.Error(err)
	}
	if found := census(t, at); len(found) > 0 {
		t.Errorf("left behind: %q", found)
	}
}

// A daemon that goes away for good costs a bounded time and ends in an error, never in a result that something is left
// of. The next executor removes what the last one could not.
func TestDaemonGone(t *testing.T) {
	t.Parallel()
	d, at := ownDaemon(t)
	ex := at.open(t, containerd.Config{Root: containerd.Root{Reads: hostReads}})
	var live output
	done := make(chan error, 1)
	go func() {
		spec := executor.Spec{Args: []string{"sh", "-c", "echo a; sleep 1"}, Workspace: t.TempDir(), Stdout: &live}
		_, err := ex.Run(t.Context(), spec)
		done <- err
	}()
	live.wait(t, "a")
	d.Kill()
	select {
	case err := <-done:
		if _, ok := errors.AsType[*executor.CleanupError](err); !ok || !errors.Is(err, executor.ErrLost) {
			t.Errorf("not the promised errors: %v", err)
		}
	case <-time.After(90 * time.Second):
		t.Fatal("Run does not return")
	}
	if _, err := ex.Run(t.Context(), executor.Spec{Args: []string{"true"}, Workspace: t.TempDir()}); err == nil {
		t.Error("a run without a daemon")
	}
	if err := ex.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := at.open(t, containerd.Config{}).Close(); err != nil {
		t.Error(err)
	}
	if found := census(t, at); len(found) > 0 {
		t.Errorf("what could not be removed is there after the next executor: %q", found)
	}
}
