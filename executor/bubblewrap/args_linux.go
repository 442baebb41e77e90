// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"path/filepath"
	"strconv"
	"strings"
)

// args builds the list that bubblewrap reads from a descriptor.
type args struct{ list []string }

func (a *args) add(words ...string) { a.list = append(a.list, words...) }

// bytes is the form of --args.
func (a *args) bytes() []byte { return []byte(strings.Join(a.list, "\x00") + "\x00") }

// isolation is what is the same in every sandbox: every namespace, no capability, nothing inherited.
func (a *args) isolation() {
	a.add("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--as-pid-1")
	a.add("--cap-drop", "ALL", "--clearenv", "--hostname", Hostname)
	a.add("--uid", strconv.Itoa(UID), "--gid", strconv.Itoa(GID))
}

// devices that hold no state and reach nothing. There is no terminal.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"}

// maskedProc are the files of /proc that tell of the machine's other users and programs and that some kernels show to
// everybody: how it was booted, which keys the uid has, which tasks wait. (The kernel itself shows no locks and no key users
// of other namespaces.) What is left describes the machine; the test TestProc lists it.
var maskedProc = []string{"/proc/cmdline", "/proc/keys", "/proc/sched_debug", "/proc/timer_list", "/proc/timer_stats"}

// system is the root: a few links and read-only binds in an empty file system, and what replaces the host's /etc, /dev and
// /proc.
func (a *args) system(v view, masks []string) {
	for _, r := range v.reads {
		switch {
		case strings.HasPrefix(r.path, "/etc/"): // below, since /etc comes first
		case r.link != "":
			a.add("--symlink", r.link, r.path)
		default:
			a.add("--ro-bind", r.path, r.path)
		}
	}
	a.add("--ro-bind", v.etc(), "/etc")
	for _, r := range v.reads {
		if strings.HasPrefix(r.path, "/etc/") && r.link == "" {
			a.add("--ro-bind", r.path, r.path)
		}
	}
	for _, path := range devices {
		a.add("--dev-bind", path, path)
	}
	for i, name := range []string{"stdin", "stdout", "stderr"} {
		a.add("--symlink", "/proc/self/fd/"+strconv.Itoa(i), "/dev/"+name)
	}
	a.add("--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "urandom", "/dev/random", "--symlink", "../tmp", "/var/tmp")
	a.add("--proc", "/proc")
	for _, path := range masks {
		a.add("--ro-bind", v.hiddenFile(), path)
	}
	a.add("--remount-ro", "/proc")
}

// writable are the places that a run may write to beside its workspace. For a root caller they are directories beside the
// workspace, and on the run's file system, if it has one, all of them together are as large as that. An ordinary caller
// cannot mount: bubblewrap does it, a file system for each, sized.
func (a *args) writable(scratch string, root bool, size int64) {
	for _, place := range [][2]string{{tmpDir, TempDir}, {homeDir, Home}, {shmDir, sharedMemory}} {
		if root {
			a.add("--bind", filepath.Join(scratch, place[0]), place[1])
			continue
		}
		a.add("--perms", "0700", "--size", strconv.FormatInt(size, 10), "--tmpfs", place[1])
	}
}

// finish closes the root, which is a file system in memory as large as half of it.
func (a *args) finish() { a.add("--remount-ro", "/") }
