// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/scratch"
	"github.com/evoseal/containment/internal/testenv"
)

// Files and directories of the source turn into links, FIFOs and each other while it is copied. Errors are in order;
// waiting is not, and nothing from outside may get into the copy.
func TestCopyRace(t *testing.T) {
	t.Parallel()
	outside := plantIn(t, memory, entry{"f", file("outside", 0o644)})
	src := plantIn(t, memory, entry{"f", file("inside", 0o644)}, entry{"d/f", file("inside", 0o644)}, entry{"p", file("inside", 0o644)})
	other := plantIn(t, memory, entry{"f", link(outside + "/f")}, entry{"d", link(outside)}, entry{"p", fifo})

	var stop atomic.Bool
	var attacker sync.WaitGroup
	attacker.Go(func() {
		for !stop.Load() {
			for _, name := range []string{"f", "d", "p"} {
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(src, name), unix.AT_FDCWD, filepath.Join(other, name),
					unix.RENAME_EXCHANGE)
			}
		}
	})
	defer attacker.Wait()
	defer stop.Store(true)

	good, bad := 0, 0
	for range 500 {
		dst := emptyIn(t, memory)
		err := within(t, 10*time.Second, func() error {
			_, err := scratch.Copy(t.Context(), src, dst, large)
			return err
		})
		if good++; err != nil {
			good, bad = good-1, bad+1
		}
		check(t, filepath.WalkDir(dst, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if data, err := os.ReadFile(p); err != nil || string(data) == "outside" {
					t.Errorf("%s holds %q, %v", p, data, err)
				}
			}
			return err
		}))
		check(t, scratch.Remove(t.Context(), dst))
	}
	if good == 0 || bad == 0 {
		t.Errorf("inconclusive: %d copies succeeded, %d failed", good, bad)
	}
}

// A file that shrinks and grows is copied as it is met.
func TestCopyChangingSize(t *testing.T) {
	t.Parallel()
	src := plant(t, entry{"f", file("", 0o644)})
	var stop atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := int64(0); !stop.Load(); i++ {
			_ = os.Truncate(filepath.Join(src, "f"), i%3*5<<20)
		}
	})
	defer writer.Wait()
	defer stop.Store(true)
	for range 100 {
		dst := empty(t)
		_, err := scratch.Copy(t.Context(), src, dst, large)
		check(t, err)
		check(t, scratch.Remove(t.Context(), dst))
	}
}

func TestCopyUnreadable(t *testing.T) {
	testenv.Need(t, "unprivileged")
	t.Parallel()
	src := plant(t, entry{"a/f", file("x", 0)}, entry{"shut", dir(0)}, entry{"ok", file("x", 0o600)})
	_, err := scratch.Copy(t.Context(), src, empty(t), large)
	got := map[string]error{}
	for _, e := range entryErrors(err) {
		got[e.Path] = e.Err
	}
	if len(got) != 2 || got["a/f"] != unix.EACCES || got["shut"] != unix.EACCES {
		t.Errorf("error %v", err)
	}
}

// An ordinary caller copies trees that it could not write to, and gives nothing away.
func TestCopyUnprivileged(t *testing.T) {
	testenv.Need(t, "unprivileged")
	t.Parallel()
	src := plant(t, entry{"d/f", file("x", 0o400)}, entry{"d", dir(0o500)})
	dst := empty(t)
	_, err := scratch.Copy(t.Context(), src, dst, large)
	check(t, err)
	if st := stat(t, dst+"/d"); st.Mode&0o777 != 0o500 {
		t.Errorf("mode %#o", st.Mode)
	}
	o := large
	o.Owner = &scratch.Owner{UID: runUID, GID: runGID}
	if _, err := scratch.Copy(t.Context(), src, empty(t), o); err == nil {
		t.Error("files were given to another user without the privilege")
	}
}

func TestCopyReflink(t *testing.T) {
	testenv.Need(t, "reflink")
	const size = 64 << 20
	data := make([]byte, size)
	rand.Read(data)
	src, dst := plant(t, entry{"f", file(string(data), 0o644)}), empty(t)
	free := func() int64 {
		unix.Sync()
		var st unix.Statfs_t
		check(t, unix.Statfs(dst, &st))
		return int64(st.Bfree) * st.Bsize
	}
	before := free()
	stats, err := scratch.Copy(t.Context(), src, dst, large)
	check(t, err)
	if used := before - free(); used > size/4 || stats.Bytes != size {
		t.Errorf("%d bytes were used to share %d: %+v", used, size, stats)
	}
	sameFile(t, src+"/f", dst+"/f")
}
