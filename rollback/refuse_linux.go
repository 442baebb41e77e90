// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
)

// system are directories that are nobody's tree, though one may lie in them. They are compared by identity, so that no
// other spelling, no bind mount and no link makes them anything else.
var system = []string{
	"/", "/usr", "/etc", "/var", "/boot", "/dev", "/run", "/home", "/root", "/opt", "/srv", "/mnt", "/media",
	"/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/proc", "/sys", "/tmp", "/var/tmp", "/dev/shm",
}

// pseudo are file systems whose files are the kernel's answers. Source: linux/magic.h.
var pseudo = map[int64]string{
	unix.PROC_SUPER_MAGIC: "proc", unix.SYSFS_MAGIC: "sysfs", unix.CGROUP_SUPER_MAGIC: "cgroup",
	unix.CGROUP2_SUPER_MAGIC: "cgroup2", unix.DEVPTS_SUPER_MAGIC: "devpts", unix.DEBUGFS_MAGIC: "debugfs",
	unix.TRACEFS_MAGIC: "tracefs", unix.SECURITYFS_MAGIC: "securityfs", unix.BPF_FS_MAGIC: "bpf",
	unix.PSTOREFS_MAGIC: "pstore", unix.SELINUX_MAGIC: "selinuxfs", unix.BINFMTFS_MAGIC: "binfmt_misc",
	unix.EFIVARFS_MAGIC: "efivarfs", unix.NSFS_MAGIC: "nsfs", unix.SMACK_MAGIC: "smackfs",
	unix.RDTGROUP_SUPER_MAGIC: "resctrl", unix.BINDERFS_SUPER_MAGIC: "binder", 0x62656570: "configfs",
}

// refusal says why a directory may not be a tree whatever it is wanted for; empty if it may.
func (s *Store) refusal(t *target, st *unix.Stat_t) string {
	if reason := ofSystem(t, st); reason != "" {
		return reason
	}
	if euid := os.Geteuid(); euid != 0 && int(st.Uid) != euid {
		return fmt.Sprintf("it belongs to user %d, not to %d, who uses it", st.Uid, euid)
	}
	if inGit(t.path) {
		return "it is a repository's own directory; the tree that the repository is in can be one"
	}
	return s.refusalOfPlace(t)
}

func ofSystem(t *target, st *unix.Stat_t) string {
	if stfs, err := fsys.Statfs(t.fd); err != nil {
		return fmt.Sprintf("its file system cannot be examined (%v)", err)
	} else if name := pseudo[int64(stfs.Type)]; name != "" {
		return "it is on a " + name + " file system, where files are answers of the kernel"
	}
	if top, ok := identityOf("/"); ok { // devtmpfs has the number of tmpfs
		if dev, ok := identityOf("/dev"); ok && dev.dev != top.dev && dev.dev == uint64(st.Dev) {
			return "it is on the file system of /dev"
		}
	}
	for _, dir := range append([]string{os.TempDir()}, system...) {
		if id, ok := identityOf(dir); ok && id == t.id {
			return fmt.Sprintf("it is the directory %s of the system; a tree is a directory of its own in it", dir)
		}
	}
	if rest, ok := strings.CutPrefix(t.path, "/lib"); ok && !strings.Contains(rest, "/") {
		return "it is a directory of the system"
	}
	for _, dir := range homes() {
		if id, ok := identityOf(dir); ok && id == t.id {
			return "it is a home directory; a tree is a directory of its own in it"
		}
	}
	return ""
}

// identityOf follows links: what a name of the system leads to is meant.
func identityOf(path string) (fileID, bool) {
	var st unix.Stat_t
	if err := fsys.Retry(func() error { return unix.Stat(path, &st) }); err != nil {
		return fileID{}, false
	}
	return idOf(&st), true
}

// homes returns $HOME and the home directory of the effective user, which may be two.
func homes() []string {
	var list []string
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		list = append(list, home)
	}
	u, err := user.Current() // remembered by the library; of the real user
	if os.Geteuid() != os.Getuid() || err != nil {
		u, err = user.LookupId(strconv.Itoa(os.Geteuid()))
	}
	if err == nil && filepath.IsAbs(u.HomeDir) {
		list = append(list, u.HomeDir)
	}
	return list
}

// refusalOfPlace looks at what is above and below by walking up, which no spelling of a path can mislead.
func (s *Store) refusalOfPlace(t *target) string {
	store, err := s.dir.OpenToRead(".")
	if err != nil {
		return fmt.Sprintf("the store cannot be examined (%v)", err)
	}
	defer func() { _ = store.Close() }()
	storeUp, err := ancestors(int(store.Fd()))
	if err != nil {
		return fmt.Sprintf("what is above the store cannot be examined (%v)", err)
	}
	if slices.Contains(storeUp, t.id) {
		return "the store lies in it; move the store out of the tree"
	}
	up, err := ancestors(t.fd)
	if err != nil {
		return fmt.Sprintf("what is above it cannot be examined (%v)", err)
	}
	if slices.Contains(up, storeUp[0]) {
		return "it lies in the store"
	}
	if above := storeAbove(t.fd, len(up)); above {
		return "it is another store, or lies in one"
	}
	for what, dir := range map[string]string{"the working directory": ".", "the running program": programDir()} {
		if slices.Contains(above(dir), t.id) {
			return what + " lies in it or is it"
		}
	}
	return ""
}

// programDir returns where the running program is. Empty: nobody knows.
func programDir() string {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil || !filepath.IsAbs(exe) {
		return ""
	}
	return filepath.Dir(exe)
}

// above returns the directory at a path and what it lies in. One that is gone lies in nothing.
func above(path string) []fileID {
	if path == "" {
		return nil
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	up, _ := ancestors(fd)
	return up
}

// climb calls look for a directory and everything above it, until the top, or until look returns false.
func climb(fd int, look func(fd int, id fileID) bool) error {
	at := fd
	defer func() {
		if at != fd {
			unix.Close(at)
		}
	}()
	var last fileID
	for depth := 0; ; depth++ {
		st, err := fsys.Fstat(at)
		if err != nil {
			return err
		}
		id := idOf(&st)
		if depth > 0 && id == last {
			return nil // the top is its own parent
		}
		if !look(at, id) {
			return nil
		}
		up, err := unix.Openat(at, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if at != fd {
			unix.Close(at)
		}
		at, last = up, id
	}
}

func ancestors(fd int) (ids []fileID, err error) {
	err = climb(fd, func(_ int, id fileID) bool {
		ids = append(ids, id)
		return true
	})
	return ids, err
}

// storeAbove reports whether the directory or one above it looks like a store.
func storeAbove(fd, most int) (found bool) {
	_ = climb(fd, func(fd int, _ fileID) bool {
		found = looksLikeStore(fd)
		most--
		return !found && most > 0
	})
	return found
}

func looksLikeStore(fd int) bool {
	for _, name := range []string{formatFile, packsDir, manifestsDir, treesDir} {
		if _, err := fsys.Lstat(fd, name); err != nil {
			return false
		}
	}
	return true
}

// checkNesting refuses a tree in another registered one or around one: a restore of one would undo the other.
func (s *Store) checkNesting(t *target) error {
	up, err := ancestors(t.fd)
	if err != nil {
		return fmt.Errorf("rollback: %s: %w", t.path, err)
	}
	keys, err := s.trees()
	if err != nil {
		return err
	}
	for _, key := range keys {
		r, err := s.registered(key)
		if err != nil {
			return err
		}
		other := above(string(r.Path))
		if key == t.key || len(other) == 0 || other[0].ino != r.Inode {
			continue // that tree is gone
		}
		if other[0] == t.id {
			continue // the same directory under another path or after another birth: nothing is nested
		}
		if slices.Contains(up, other[0]) {
			return &TargetError{t.path, fmt.Sprintf("it lies in the tree %q of the same store", r.Path)}
		}
		if slices.Contains(other, t.id) {
			return &TargetError{t.path, fmt.Sprintf("the tree %q of the same store lies in it", r.Path)}
		}
	}
	return nil
}

// checkPlace refuses a store that lies in one of its own trees.
func (s *Store) checkPlace() error {
	up := above(s.path)
	keys, err := s.trees()
	if err != nil {
		return err
	}
	for _, key := range keys {
		r, err := s.registered(key)
		if errors.Is(err, ErrCorrupt) { // it costs that tree; whether the store lies in it is seen again when it is used
			s.log.Warn("rollback: the marker of a tree is damaged", "error", err)
			continue
		}
		if err != nil {
			return err
		}
		if id, ok := identityOf(string(r.Path)); ok && id.ino == r.Inode && slices.Contains(up, id) {
			return &TargetError{s.path, fmt.Sprintf("the store lies in its tree %q; move it out", r.Path)}
		}
	}
	return nil
}
