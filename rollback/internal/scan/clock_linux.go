// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
)

// timing is what is known about the times of a file system.
type timing struct {
	slack time.Duration // two changes closer than this may bear the same time
	local bool          // this kernel stamps its files, whatever else it cannot do
	ctime bool          // a change moves the ctime and nobody can set it; otherwise the mtime must be old as well
	inode bool          // a listing tells the inodes that stat tells
}

// timings of those file systems whose times this kernel makes with at least the resolution of its tick, which is 10 ms
// at most. The magic numbers are those of linux/magic.h. Everything else, network file systems above all, gets unknown.
var timings = map[int64]timing{
	unix.EXT4_SUPER_MAGIC:      {10 * time.Millisecond, true, true, true},
	unix.XFS_SUPER_MAGIC:       {10 * time.Millisecond, true, true, true},
	unix.BTRFS_SUPER_MAGIC:     {10 * time.Millisecond, true, true, true},
	unix.TMPFS_MAGIC:           {10 * time.Millisecond, true, true, true},
	unix.F2FS_SUPER_MAGIC:      {10 * time.Millisecond, true, true, true},
	unix.OVERLAYFS_SUPER_MAGIC: {10 * time.Millisecond, true, true, false}, // an upper layer is never on a network
	unix.MSDOS_SUPER_MAGIC:     {2 * time.Second, true, false, false},
	unix.EXFAT_SUPER_MAGIC:     {2 * time.Second, true, false, false},
}

// unknown file systems keep no better time than the coarsest one, FAT.
var unknown = timing{slack: 2 * time.Second}

// clock tells the time of a file system. A test can replace it.
type clock interface {
	now(root int) (stamp, bool)
	timing(root int) timing
}

type kernelClock struct{}

func (kernelClock) timing(root int) timing {
	st, err := fsys.Statfs(root)
	if err != nil {
		return unknown
	}
	t, known := timings[int64(st.Type)]
	if !known {
		return unknown
	}
	return t
}

// now returns the ctime of a file without a name that is made below the root, so that the host's clock plays no part:
// it may be another one than that of a server. Where such a file cannot be made, because the file system knows none or
// the directory is closed to us, the kernel's clock is as good if the kernel stamps the files. Otherwise there is no
// time, and every file is read.
func (c kernelClock) now(root int) (stamp, bool) {
	if fd, err := fsys.Openat2(root, ".", unix.O_TMPFILE|unix.O_RDWR, 0o600); err == nil {
		defer unix.Close(fd)
		var st unix.Statx_t
		err = fstat(fd, &st)
		return stamp{st.Ctime.Sec, st.Ctime.Nsec}, err == nil
	}
	if !c.timing(root).local {
		return stamp{}, false
	}
	// COARSE: file systems take the time of the last tick, and a later one would let a racy file pass.
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		return stamp{}, false
	}
	return stamp{ts.Sec, uint32(ts.Nsec)}, true
}

// usable reports whether a cache can be believed at all at the time now of the file system. It must be of this
// directory and these options; and a clock that runs backwards makes times repeat.
func (c *Cache) usable(fingerprint [32]byte, now stamp, timed bool) bool {
	return c != nil && c.fingerprint == fingerprint && timed && !now.before(c.start)
}

// trust decides which records of a cache are old enough to vouch for bytes.
type trust struct {
	limit stamp // what is not older is racy
	mtime bool  // the mtime must be older as well
}

func trusted(c *Cache, t timing) trust {
	return trust{limit: c.start.minus(int64(t.slack)), mtime: !t.ctime}
}

// old is the racy rule.
func (t trust) old(r record) bool {
	return r.ctime().before(t.limit) && (!t.mtime || r.mtime().before(t.limit))
}

// settled returns what an earlier result can vouch for later: that which was old enough when its scan began. A result
// that has no time, or did not need to make a new cache, vouches for what its cache did.
func (r *Result) settled(t timing) trust {
	if r.cache == nil {
		return trust{}
	}
	return trust{limit: r.cache.start.minus(int64(t.slack)), mtime: !t.ctime}
}

// young is the racy rule for a node of such a result.
func (t trust) young(n *Node) bool {
	return !stamp{n.Stat.CtimeSec, n.Stat.CtimeNsec}.before(t.limit) || t.mtime && !stamp{n.Sec, n.Nsec}.before(t.limit)
}
