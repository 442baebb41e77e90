// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/testenv"
)

func isPending(err error) bool { return errors.Is(err, ErrPending) }

// failNth makes the n-th operation fail, and if lasting all that follow.
func failNth(n int, errno error, lasting bool) (inject func(op string) error, failed *atomic.Bool) {
	var mu sync.Mutex
	seen := 0
	failed = new(atomic.Bool)
	inject = func(op string) error {
		switch op {
		case "open", "read", "remove", "rmdir", "unlink", "chmod":
			if errno == unix.ENOSPC {
				return nil // they need no space
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen == n || lasting && seen > n {
			failed.Store(true)
			return errno
		}
		return nil
	}
	return inject, failed
}

// TestFaultAtEveryOperation: X5. Whatever fails, the tree is old or, after Recover, new.
func TestFaultAtEveryOperation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		errno   error
		lasting bool
	}{{"EIO", unix.EIO, false}, {"ENOSPC for good", unix.ENOSPC, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sawOld, sawPending := 0, 0
			for n := 1; ; n += *every {
				b := newBenchIn(t, place(t, SyncProcess), Options{Workers: 1}) // with syncs, which can fail too
				good := picture(t, b.tree)
				spoil(t, b.tree)
				bad := picture(t, b.tree)
				inject, failed := failNth(n, c.errno, c.lasting)
				b.s.inject = inject
				_, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
				b.s.inject = nil
				what := fmt.Sprintf("operation %d: %v", n, err)
				if err != nil && !errors.Is(err, c.errno) && !errors.Is(err, ErrTarget) { // a store that cannot be looked at
					t.Fatalf("%s: want %v", what, c.errno)
				}
				want := good
				switch {
				case isPending(err):
					sawPending++
					_, gone := os.Stat(filepath.Join(b.store, journalPath(b.key())))
					if _, err := b.s.Plan(t.Context(), b.old.ID, b.tree); isPending(err) != (gone == nil) {
						t.Errorf("%s: then a plan: %v", what, err)
					}
				case err != nil:
					sawOld++
					want = bad
					if c.errno == unix.ENOSPC && !errors.Is(err, ErrNoSpace) {
						t.Errorf("%s: want ErrNoSpace", what)
					}
				}
				if err != nil {
					if _, err := b.s.Recover(t.Context()); err != nil {
						t.Fatalf("%s: Recover: %v", what, err)
					}
				}
				same(t, what, want, picture(t, b.tree))
				if !failed.Load() {
					break
				}
				check(t, b.s.Close())
			}
			if sawOld*(*every) < 20 || sawPending*(*every) < 20 {
				t.Errorf("%d faults left the old tree, %d a pending restore", sawOld, sawPending)
			}
		})
	}
}

// TestNoExchange: file systems that cannot exchange two names.
func TestNoExchange(t *testing.T) {
	t.Parallel()
	for _, errno := range []error{unix.EINVAL, unix.ENOSYS} {
		b := newBench(t, scratchy)
		good := picture(t, b.tree)
		spoil(t, b.tree)
		calls := 0
		b.s.inject = func(op string) error {
			if op == "exchange" {
				calls++
				return errno
			}
			return nil
		}
		r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
		check(t, err)
		same(t, errno.Error(), good, picture(t, b.tree))
		if calls == 0 || len(r.Quarantined) > 0 {
			t.Errorf("%d calls, %+v", calls, r.Quarantined)
		}
	}
}

// TestRestoreOnAFullDisk: the tree on a file system of 1 MiB that has no room for what has to be staged.
func TestRestoreOnAFullDisk(t *testing.T) {
	testenv.Need(t, "tmpfs-mount")
	t.Parallel()
	b := newBench(t, Options{})
	check(t, b.s.Close())
	small := filepath.Join(filepath.Dir(b.tree), "small")
	check(t, os.Mkdir(small, 0o755))
	check(t, unix.Mount("tmpfs", small, "tmpfs", 0, "size=1m"))
	t.Cleanup(func() { check(t, unix.Unmount(small, unix.MNT_DETACH)) })
	b.tree = filepath.Join(small, "tree")
	check(t, os.Mkdir(b.tree, 0o755))
	b.open(Options{})
	big := make([]byte, 600<<10)
	check(t, os.WriteFile(b.path("big"), big, 0o644))
	var err error
	b.old, err = b.s.Checkpoint(t.Context(), b.tree, Meta{})
	check(t, err)
	big[0] = 1
	check(t, os.WriteFile(b.path("big"), big, 0o644))
	bad := picture(t, b.tree)
	r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
	if !errors.Is(err, ErrNoSpace) || isPending(err) || r != nil {
		t.Errorf("%+v, %v", r, err)
	}
	same(t, "full disk", bad, picture(t, b.tree))
	// With room it works, and the store is on another file system.
	check(t, unix.Mount("tmpfs", small, "tmpfs", unix.MS_REMOUNT, "size=4m"))
	_, err = b.s.Restore(t.Context(), b.old.ID, b.tree)
	check(t, err)
	if b.digest() != b.old.Digest {
		t.Error("not restored")
	}
}
