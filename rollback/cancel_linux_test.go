// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// descriptors counts what this process has open below a directory.
func descriptors(t *testing.T, below string) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	for _, fd := range fds {
		target, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if err == nil && (target == below || len(target) > len(below) && target[:len(below)+1] == below+"/") {
			n++
		}
	}
	return n
}

// TestCancelAtEveryStep: R12. The end of ctx before the commit leaves the old tree, after it the new one is finished; and
// neither leaves a descriptor open or staging behind.
func TestCancelAtEveryStep(t *testing.T) {
	t.Parallel()
	sawOld, sawNew := 0, 0
	for n := 1; ; n += *every {
		b := newBench(t, scratchy)
		good := picture(t, b.tree)
		spoil(t, b.tree)
		bad := picture(t, b.tree)
		_, err := b.s.Plan(t.Context(), b.old.ID, b.tree) // opens packs, which stay open
		check(t, err)
		top := filepath.Dir(b.tree)
		before := descriptors(t, top)
		ctx, cancel := context.WithCancel(t.Context())
		seen, committed := 0, false
		b.s.hook = func(step string) {
			committed = committed || step == "restore/committed"
			if seen++; seen == n {
				cancel()
			}
		}
		_, err = b.s.Restore(ctx, b.old.ID, b.tree)
		cancel()
		b.s.hook = nil
		switch {
		case err == nil && committed:
			sawNew++
			same(t, "canceled after the commit", good, picture(t, b.tree))
		case errors.Is(err, context.Canceled) && !isPending(err):
			sawOld++
			same(t, "canceled before the commit", bad, picture(t, b.tree))
		default:
			t.Errorf("step %d: %v", n, err)
		}
		if after := descriptors(t, top); after > before+1 { // the pack of the safety checkpoint
			t.Errorf("step %d: %d descriptors, %d before", n, after, before)
		}
		check(t, b.s.Close())
		if left := descriptors(t, top); left > 0 {
			t.Errorf("step %d: %d descriptors after Close", n, left)
		}
		if seen < n {
			break
		}
	}
	if sawOld*(*every) < 5 || sawNew*(*every) < 20 {
		t.Errorf("%d ended old, %d new", sawOld, sawNew)
	}
}

// TestNoDescriptorIsLeftByAFault: nor does an error of the system, before or after the commit.
func TestNoDescriptorIsLeftByAFault(t *testing.T) {
	t.Parallel()
	for n := 1; ; n += 5 * *every {
		b := newBench(t, scratchy)
		spoil(t, b.tree)
		top := filepath.Dir(b.tree)
		inject, failed := failNth(n, unix.EIO, false)
		b.s.inject = inject
		_, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
		b.s.inject = nil
		if isPending(err) {
			_, err := b.s.Recover(t.Context())
			check(t, err)
		}
		check(t, b.s.Close())
		if left := descriptors(t, top); left > 0 {
			t.Errorf("fault %d, %v: %d descriptors after Close", n, err, left)
		}
		if !failed.Load() {
			break
		}
	}
}

// TestRelativeRoots: a relative one of Options.Roots is what it was when the store was opened.
func TestRelativeRoots(t *testing.T) {
	b := newBench(t, scratchy)
	check(t, b.s.Close())
	top := filepath.Dir(b.tree)
	check(t, os.MkdirAll(top+"/one/root", 0o755))
	check(t, os.MkdirAll(top+"/two/root", 0o755))
	t.Chdir(top + "/one")
	b.open(Options{Sync: SyncProcess, Roots: []string{"root"}})
	t.Chdir(top + "/two")
	if _, err := b.s.Restore(t.Context(), b.old.ID, top+"/two/root"); !errors.Is(err, ErrTarget) {
		t.Errorf("another directory: %v", err)
	}
	if _, err := b.s.Restore(t.Context(), b.old.ID, top+"/one/root"); err != nil {
		t.Error(err)
	}
	if _, err := Open(top+"/other", &Options{Roots: []string{""}}); !errors.Is(err, ErrTarget) {
		t.Errorf("a root without a name: %v", err)
	}
}
