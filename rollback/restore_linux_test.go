// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestRestoreBringsEverythingBack: R1, R2, R3, R4, R6, R10, R11, under a umask that takes everything away.
func TestRestoreBringsEverythingBack(t *testing.T) {
	for name, o := range map[string]Options{
		"durable": {}, "process": scratchy, "no codec, one worker": {Codec: CodecNone, Workers: 1},
	} {
		t.Run(name, func(t *testing.T) {
			defer syscall.Umask(syscall.Umask(0o077))
			b := newBench(t, o)
			good := picture(t, b.tree)
			spoil(t, b.tree)
			bad := picture(t, b.tree)

			plan, err := b.s.Plan(t.Context(), b.old.ID, b.tree)
			check(t, err)
			same(t, "a plan changed something", bad, picture(t, b.tree))
			r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
			check(t, err)
			same(t, "restored", good, picture(t, b.tree))
			if r.Digest != b.old.Digest {
				t.Errorf("digest %x, want %x", r.Digest, b.old.Digest)
			}
			if diff := cmp.Diff(plan.Changes, r.Changes); diff != "" || len(r.Changes) < 20 {
				t.Errorf("%d changes; the plan differs from the restore:\n%s", len(r.Changes), diff)
			}
			if len(r.Quarantined)+len(r.Kept) > 0 || r.Recovered || r.Safety.IsZero() {
				t.Errorf("%+v", r)
			}
			b.unchanged()

			r, err = b.s.Restore(t.Context(), r.Safety, b.tree)
			check(t, err)
			same(t, "undone", bad, picture(t, b.tree))
			if len(r.Quarantined) > 0 {
				t.Errorf("undo: %+v", r.Quarantined)
			}
		})
	}
}

// unchanged demands that a restore finds nothing to do, writes nothing and makes no checkpoint.
func (b *bench) unchanged() {
	b.t.Helper()
	before := picture(b.t, b.store)
	r, err := b.s.Restore(b.t.Context(), b.old.ID, b.tree)
	check(b.t, err)
	if len(r.Changes) > 0 || !r.Safety.IsZero() || r.Digest != b.old.Digest {
		b.t.Errorf("restored twice: %+v", r)
	}
	after := picture(b.t, b.store)
	for name := range before {
		if strings.HasSuffix(name, "/cache") || strings.HasPrefix(name, "tmp/") || strings.HasPrefix(name, "trees/") {
			delete(before, name)
			delete(after, name)
		}
	}
	for name := range before {
		before[name], after[name] = "", ""
	}
	same(b.t, "the store", before, after)
}

// TestRestoreTouchesOnlyWhatDiffers: R5.
func TestRestoreTouchesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	ctimes := func() map[string]string {
		all := map[string]string{}
		for name := range picture(t, b.tree) {
			var st unix.Stat_t
			check(t, unix.Lstat(b.path(name), &st))
			all[name] = fmt.Sprint(st.Ino, st.Ctim)
		}
		return all
	}
	before := ctimes()
	b.write("a", "changed")
	_, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
	check(t, err)
	after := ctimes()
	for _, name := range []string{"a", "."} {
		if before[name] == after[name] {
			t.Errorf("%s was not touched", name)
		}
		delete(before, name)
		delete(after, name)
	}
	same(t, "untouched entries", before, after)
}

// TestRestoreSpoilsNothingElsewhere: R6, R7 for links that are there already, R9.
func TestRestoreSpoilsNothingElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	outside := filepath.Join(filepath.Dir(b.tree), "outside")
	check(t, os.Mkdir(outside, 0o755))
	check(t, os.WriteFile(filepath.Join(outside, "er"), []byte("canary"), 0o600))
	good := picture(t, b.tree)
	// The parent of a file is a link now, and a file is linked from outside and written to through that name.
	check(t, os.RemoveAll(b.path("src/deep")))
	check(t, os.Symlink(outside, b.path("src/deep")))
	check(t, os.Link(b.path("a"), filepath.Join(outside, "hard")))
	check(t, os.WriteFile(filepath.Join(outside, "hard"), []byte("written outside"), 0o644))
	check(t, os.Link(b.path("run"), filepath.Join(outside, "mode")))
	check(t, os.Chmod(b.path("run"), 0o600))
	before := picture(t, outside)
	_, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
	check(t, err)
	same(t, "restored", good, picture(t, b.tree))
	for name, text := range picture(t, outside) {
		want, _, _ := strings.Cut(before[name], " with ")
		if got, _, _ := strings.Cut(text, " with "); got != want {
			t.Errorf("outside %s: %s became %s", name, want, got)
		}
	}
}

// TestRestoreEmptyRoot: everything is gone, and the root cannot be written to by its owner.
func TestRestoreEmptyRoot(t *testing.T) {
	t.Parallel()
	b := newBench(t, scratchy)
	good := picture(t, b.tree)
	check(t, os.Chmod(b.path("closed"), 0o755))
	for _, name := range []string{"a", "src", "empty", "swap-dir", "swap-file", "closed", "odd\n\xff", "nested/code", "-rf",
		"run",
		"pair-a", "trio-a", "link", "up", "loop", "swap-link"} {
		check(t, os.RemoveAll(b.path(name)))
	}
	check(t, os.Chmod(b.tree, 0o555))
	r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
	check(t, err)
	same(t, "restored", good, picture(t, b.tree))
	if got := b.digest(); got != r.Digest {
		t.Errorf("digest %x, read again %x", r.Digest, got)
	}
	if _, err := os.Stat(filepath.Join(b.store, notePath(b.key()))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the note on the root's mode: %v", err)
	}
}

func (b *bench) digest() Digest {
	b.t.Helper()
	d, err := b.s.Digest(b.t.Context(), b.tree)
	check(b.t, err)
	return d
}

func (b *bench) key() string {
	b.t.Helper()
	keys, err := b.s.trees()
	check(b.t, err)
	if len(keys) != 1 {
		b.t.Fatalf("trees: %q", keys)
	}
	return keys[0]
}

// TestCancel: R12.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at  string
		new bool
	}{
		{"restore/scanned", false}, {"restore/safety", false}, {"restore/staging", false}, {"restore/staged", false},
		{"restore/committed", true}, {"restore/applied", true}, {"restore/settled", true},
	} {
		b := newBench(t, scratchy)
		good := picture(t, b.tree)
		spoil(t, b.tree)
		bad := picture(t, b.tree)
		ctx, cancel := context.WithCancel(t.Context())
		b.s.hook = func(step string) {
			if step == c.at {
				cancel()
			}
		}
		r, err := b.s.Restore(ctx, b.old.ID, b.tree)
		if c.new {
			check(t, err)
			same(t, c.at, good, picture(t, b.tree))
			continue
		}
		var failed *RestoreError
		if !errors.As(err, &failed) || failed.Committed || !errors.Is(err, context.Canceled) || r != nil {
			t.Errorf("%s: %v, %v", c.at, r, err)
		}
		same(t, c.at, bad, picture(t, b.tree))
	}
}

// TestMTimeTouch: rewritten files are new, and the tree counts as restored.
func TestMTimeTouch(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{Sync: SyncProcess, MTime: MTimeTouch})
	start := time.Now().Add(-time.Second)
	good := picture(t, b.tree)
	b.write("a", "bad")
	b.write("src/b", "bad")
	r, err := b.s.Restore(t.Context(), b.old.ID, b.tree)
	check(t, err)
	if r.Digest.Content != b.old.Digest.Content || r.Digest.Tree == b.old.Digest.Tree {
		t.Errorf("digest %x, checkpoint %x", r.Digest, b.old.Digest)
	}
	got := picture(t, b.tree)
	for _, name := range []string{"a", "src/b"} {
		st, err := os.Stat(b.path(name))
		check(t, err)
		if st.ModTime().Before(start) {
			t.Errorf("%s is of %v", name, st.ModTime())
		}
		delete(good, name)
		delete(got, name)
	}
	same(t, "everything else", good, got)
	if r, err = b.s.Plan(t.Context(), b.old.ID, b.tree); err != nil || len(r.Changes) > 0 {
		t.Errorf("a second plan: %+v, %v", r, err)
	}
}
