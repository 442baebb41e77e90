// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/scratch"
	"github.com/evoseal/containment/internal/testenv"
)

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", path, err)
	}
}

func TestRemoveHostile(t *testing.T) {
	t.Parallel()
	outside := plant(t, entry{"keep/me", file("x", 0o600)})
	top := plant(t,
		entry{"f", file("x", 0)}, entry{"pipe", fifo}, entry{"sock", socket}, entry{"loop", link("loop")},
		entry{"out", link(outside)}, entry{"out2", link(outside + "/keep")},
		entry{"new\nline \xff", dir(0o700)}, entry{strings.Repeat("n", 255), dir(0o755)},
		entry{"shut/in/f", file("x", 0o600)}, entry{"shut/in", dir(0)}, entry{"shut", dir(0)},
		entry{"blind/f", file("x", 0o600)}, entry{"blind", dir(0o300)},
		entry{"fixed/f", file("x", 0o600)}, entry{"fixed", dir(0o555)},
		entry{"listed/d/f", file("x", 0o600)}, entry{"listed", dir(0o400)},
		entry{"empty", dir(0)})
	check(t, within(t, 10*time.Second, func() error { return scratch.Remove(t.Context(), top) }))
	gone(t, top)
	if got := names(t, outside); len(got) != 2 {
		t.Errorf("outside the tree: %q", got)
	}
}

func TestRemoveOther(t *testing.T) {
	t.Parallel()
	top := plant(t, entry{"f", file("x", 0o600)}, entry{"d/f", file("x", 0o600)}, entry{"l", link("d")})
	check(t, scratch.Remove(t.Context(), top+"/l")) // the link, not what it names
	check(t, scratch.Remove(t.Context(), top+"/f"))
	check(t, scratch.Remove(t.Context(), top+"/none"))
	check(t, scratch.Remove(t.Context(), top+"/none/below"))
	if got := names(t, top); len(got) != 2 {
		t.Errorf("left: %q", got)
	}
	check(t, scratch.Remove(t.Context(), top+"/d/"))
	gone(t, top+"/d")
	for _, path := range []string{"", ".", "..", "/", "../..", "/..", "x/.."} {
		if err := scratch.Remove(t.Context(), path); !errors.Is(err, scratch.ErrOptions) {
			t.Errorf("%q: error %v", path, err)
		}
	}
}

// 10,000 levels, and a path of 60 × 200 bytes: neither descriptors nor stack nor PATH_MAX may matter. Some
// levels are without permissions.
func TestRemoveDeep(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("d", 200)
	top := plantIn(t, memory, entry{"deep", deep(10_000, "d")}, entry{"long", deep(60, name)})
	for i := 60; i > 0; i -= 20 {
		// From below, or an ordinary caller would not get there.
		check(t, os.Chmod(filepath.Join(top, "deep", strings.Repeat("d/", i)), 0))
	}
	check(t, within(t, time.Minute, func() error { return scratch.Remove(t.Context(), top) }))
	gone(t, top)
}

func TestRemoveMany(t *testing.T) {
	t.Parallel()
	top := plantIn(t, memory)
	for i := range 5000 {
		check(t, os.Symlink("x", fmt.Sprintf("%s/%d", top, i)))
	}
	check(t, scratch.Remove(t.Context(), top))
	gone(t, top)
}

func TestRemoveStops(t *testing.T) {
	t.Parallel()
	top := plant(t, entry{"f", file("x", 0o600)})
	cause := errors.New("deadline of the clean-up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := scratch.Remove(ctx, top); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
}

// What cannot be removed is named with the reason, and everything else is removed.
func TestRemoveImmutable(t *testing.T) {
	testenv.Need(t, "root")
	t.Parallel()
	top := plant(t, entry{"a/fixed", file("x", 0o600)}, entry{"a/f", file("x", 0o600)}, entry{"deep", deep(200, "d")})
	fixed, err := os.Open(top + "/a/fixed")
	check(t, err)
	defer fixed.Close()
	const immutable = 0x10 // FS_IMMUTABLE_FL
	if err := unix.IoctlSetPointerInt(int(fixed.Fd()), unix.FS_IOC_SETFLAGS, immutable); err != nil {
		// Not allowed to this root, or unknown to this file system: then nothing may be in the way.
		check(t, scratch.Remove(t.Context(), top))
		gone(t, top)
		return
	}
	err = scratch.Remove(t.Context(), top)
	if !errors.Is(err, scratch.ErrImmutable) || len(entryErrors(err)) != 1 || entryErrors(err)[0].Path != "a/fixed" {
		t.Errorf("error %v", err)
	}
	if got := names(t, top); len(got) != 2 {
		t.Errorf("left: %q", got)
	}
	check(t, unix.IoctlSetPointerInt(int(fixed.Fd()), unix.FS_IOC_SETFLAGS, 0))
	check(t, scratch.Remove(t.Context(), top))
}

func TestRemoveLeavesMounts(t *testing.T) {
	testenv.Need(t, "tmpfs-mount")
	t.Parallel()
	top := plant(t, entry{"a/m", dir(0o755)}, entry{"b", file("x", 0o600)})
	check(t, unix.Mount("none", top+"/a/m", "tmpfs", 0, ""))
	defer unix.Unmount(top+"/a/m", unix.MNT_DETACH)
	check(t, os.WriteFile(top+"/a/m/keep", nil, 0o600))
	err := scratch.Remove(t.Context(), top)
	if !errors.Is(err, scratch.ErrMounted) || !strings.Contains(err.Error(), `"a/m"`) {
		t.Errorf("error %v", err)
	}
	if got := names(t, top); strings.Join(got, " ") != "a/ a/m/ a/m/keep" {
		t.Errorf("left: %q", got)
	}
	if err := scratch.Remove(t.Context(), top+"/a/m"); !errors.Is(err, scratch.ErrMounted) {
		t.Errorf("the mount itself: error %v", err)
	}
	check(t, unix.Unmount(top+"/a/m", 0))
	check(t, scratch.Remove(t.Context(), top))
}

// What an ordinary caller may not remove is an error, not a loop.
func TestRemoveForeign(t *testing.T) {
	testenv.Need(t, "unprivileged")
	t.Parallel()
	err := within(t, 5*time.Second, func() error { return scratch.Remove(t.Context(), "/proc/self/status") })
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		t.Errorf("error %v", err)
	}
}
