// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/runaway"
)

// childFull fills a small file system of its own, and opens the run again when there is room.
func childFull(args []string) error {
	dir := args[0]
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		return err
	}
	s, err := runaway.FileStore(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	l := runaway.Limits{MaxIterations: 10_000, MaxConsecutiveFailures: 10_000, MaxFailures: runaway.NoLimit,
		NoImprovement: runaway.NoLimit}
	g, err := runaway.Open(ctx, runID, l, s, nil)
	if err != nil {
		return err
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 16<<10), 0o600); err != nil {
		return err
	}
	begun := 0
	for it, beginErr := range g.Iterations(ctx, runaway.Estimate{}) {
		if err = beginErr; err == nil {
			begun++
			_ = it.End(rejected)
		}
	}
	stop, ok := errors.AsType[*runaway.StopError](err)
	if !ok || stop.Reason != runaway.ReasonState || !errors.Is(err, syscall.ENOSPC) || begun == 0 {
		return fmt.Errorf("after %d iterations: %w", begun, err)
	}
	if err := g.Close(ctx); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("close: %w", err)
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	if g, err = runaway.Open(ctx, runID, l, s, nil); err != nil {
		return err
	}
	if got := g.Status().Attempts; got < begun || got > begun+1 {
		return fmt.Errorf("%d found again, %d begun", got, begun)
	}
	return g.Close(ctx)
}

// TestDiskFull: a disk that is really full.
func TestDiskFull(t *testing.T) {
	testenv.Need(t, "root")
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childRole+"=full "+t.TempDir())
	// Nobody else sees the mount, and it ends with the child.
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
