// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
)

// modified returns when each name below dir was modified.
func modified(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	times := map[string]time.Time{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		times[path] = info.ModTime()
		return err
	}))
	return times
}

// TestRevertPutsTimesBack: after Revert no time of modification tells that there was an Apply, neither of a file nor of a
// directory.
func TestRevertPutsTimesBack(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, treePolicyText)
	for seed := range uint64(10) {
		eachWalk(t, func(t *testing.T, o *allowlist.TreeOptions) {
			rnd := rand.New(rand.NewPCG(seed, 11))
			dir, edits := randomSet(t, rnd)
			for path := range modified(t, dir) {
				must(t, os.Chtimes(path, time.Time{}, time.Unix(1_000_000_000+rnd.Int64N(1e6), rnd.Int64N(1e9))))
			}
			before := modified(t, dir)
			r, err := applyEdits(t, p, openTree(t, dir, o), edits...)
			must(t, err)
			if cmp.Equal(before, modified(t, dir)) {
				t.Fatal("Apply has changed no time: there is nothing to put back")
			}
			must(t, r.Revert(t.Context()))
			if diff := cmp.Diff(before, modified(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSumFile: whatever size a file was said to have, its digest is that of all of it. The sizes are those around the
// buffer.
func TestSumFile(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 1, 10, 64<<10 - 1, 64 << 10, 64<<10 + 1, 200_000} {
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(i * 7 >> 3)
		}
		for _, claimed := range []int64{size, 0, size / 2, max(0, size-1), size + 1, 64<<10 - 1, 1 << 20} {
			got, err := allowlist.SumFile(bytes.NewReader(content), claimed)
			if must(t, err); got != allowlist.Sum(content) {
				t.Errorf("%d bytes, said to be %d: another digest", size, claimed)
			}
			got, err = allowlist.SumFile(iotest.HalfReader(bytes.NewReader(content)), 1<<20)
			if must(t, err); got != allowlist.Sum(content) {
				t.Errorf("%d bytes, read in parts: another digest", size)
			}
		}
	}
	broken := errors.New("broken")
	for _, claimed := range []int64{0, 10, 1 << 20} {
		if _, err := allowlist.SumFile(iotest.ErrReader(broken), claimed); !errors.Is(err, broken) {
			t.Errorf("said to be %d bytes: got %v", claimed, err)
		}
	}
}
