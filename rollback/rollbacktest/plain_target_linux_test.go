// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// registered is what the store knows of a tree.
type registered struct {
	Path     string
	Dev, Ino uint64
}

func (p *plain) key(path string) string     { return fmt.Sprintf("%x", sha256.Sum256([]byte(path))) }
func (p *plain) journal(path string) string { return p.dir + "/trees/" + p.key(path) + ".journal" }

// noteOf names a note on the root's time, which making and removing the staging directory moves.
func (p *plain) noteOf(path string) string { return p.dir + "/trees/" + p.key(path) + ".note" }

// enter takes both locks and lets only trees through that may be worked on. With the ID of a checkpoint it must be of
// this very tree.
func (p *plain) enter(ctx context.Context, path string, id rollback.ID) (leave func(), err error) {
	unlock := func() {}
	if p.d != noLock {
		if unlock, err = p.lock(ctx); err != nil {
			return nil, err
		}
	}
	treeUnlock, err := p.enterTree(ctx, path, id)
	if err != nil {
		unlock()
		return nil, err
	}
	return func() { treeUnlock(); unlock() }, nil
}

func (p *plain) enterTree(ctx context.Context, path string, id rollback.ID) (unlock func(), err error) {
	if reason := p.forbidden(path); reason != "" {
		return nil, &rollback.TargetError{Path: path, Reason: reason}
	}
	known, err := p.registered()
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	now := registered{path, sysStat(info).Dev, sysStat(info).Ino}
	for _, r := range known {
		nested := r.Path != path && (below(path, r.Path) || below(r.Path, path)) && p.d != nestsTrees
		if nested || r.Path == path && r != now && p.d != knowsByPath {
			return nil, &rollback.TargetError{Path: path, Reason: "overlaps or replaces the tree " + r.Path}
		}
	}
	if !id.IsZero() {
		m, err := p.manifest(id)
		if err != nil && !(p.d == restoresAnother && errors.Is(err, rollback.ErrNotFound)) {
			return nil, err
		}
		if err := p.entitled(m, path, known); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(known, now) {
		if err := p.write(p.dir+"/trees/"+p.key(path), text); err != nil {
			return nil, err
		}
	}
	if p.d == noLock {
		return func() {}, nil
	}
	return flock(ctx, path, os.O_RDONLY|unix.O_DIRECTORY)
}

// entitled: a checkpoint goes back to its own tree, or into a named root that is empty at its first use.
func (p *plain) entitled(m manifest, path string, known []registered) error {
	if m.Checkpoint.Tree == path || p.d == knowsByPath || p.d == restoresAnother {
		return nil
	}
	if !slices.Contains(p.o.Roots, path) {
		return &rollback.TargetError{Path: path, Reason: "the checkpoint is of " + m.Checkpoint.Tree}
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	used := slices.ContainsFunc(known, func(r registered) bool { return r.Path == path })
	if len(list) > 0 && !used && p.d != fillsRoots {
		return &rollback.TargetError{Path: path, Reason: "named, but not empty at its first use"}
	}
	return nil
}

func (p *plain) registered() (list []registered, err error) {
	names, err := filepath.Glob(p.dir + "/trees/*")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.Contains(filepath.Base(name), ".") { // a journal or a note
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var r registered
		if err := json.Unmarshal(text, &r); err != nil || p.key(r.Path) != filepath.Base(name) {
			return nil, &rollback.CorruptError{Object: name, Why: fmt.Sprint("not a tree: ", err)}
		}
		list = append(list, r)
	}
	return list, nil
}

// forbidden says why nothing may ever be done with a directory; "" if it may.
func (p *plain) forbidden(path string) string {
	if p.d == prefixList {
		for _, prefix := range []string{"/usr", "/etc", "/var", "/bin", "/root", "/home"} {
			if path == "/" || path == prefix || strings.HasPrefix(path, prefix+"/") {
				return "a system directory"
			}
		}
		return ""
	}
	real, err := filepath.EvalSymlinks(path)
	info, serr := os.Lstat(path)
	switch {
	case err != nil || serr != nil:
		return "cannot be resolved: " + fmt.Sprint(err, serr)
	case real != path:
		return "not the name of the directory itself, which is " + real
	case !info.IsDir():
		return "no directory"
	case os.Getuid() != 0 && int(sysStat(info).Uid) != os.Getuid():
		return "somebody else's"
	}
	for part := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(part, ".git") && p.d != forgetsHome {
			return "part of a repository's own data"
		}
	}
	var sys unix.Statfs_t
	if err := unix.Statfs(path, &sys); err != nil {
		return err.Error()
	}
	if slices.Contains([]int64{unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC,
		unix.CGROUP2_SUPER_MAGIC}, int64(sys.Type)) {
		return "no file system of files"
	}
	for _, dir := range p.protected() {
		if other, err := os.Stat(dir); err == nil && os.SameFile(info, other) {
			return "one of the protected directories: " + dir
		}
	}
	if store, err := filepath.EvalSymlinks(p.dir); err == nil && below(path, store) && p.d != insideStore {
		return "inside the store"
	}
	return ""
}

// protected lists directories; what counts is which directory they are, not how they are spelt.
func (p *plain) protected() []string {
	list := []string{"/", "/usr", "/etc", "/var", "/boot", "/dev", "/run", "/home", "/root", "/opt", "/srv", "/mnt",
		"/media", "/bin",
		"/sbin", "/lib", "/lib64", "/tmp", "/sys", "/proc", os.TempDir()}
	if p.d != forgetsHome {
		list = append(list, os.Getenv("HOME"))
		if u, err := user.Current(); err == nil {
			list = append(list, u.HomeDir)
		}
	}
	var parents []string
	if here, err := os.Getwd(); err == nil {
		parents = append(parents, here+"/x")
	}
	if exe, err := os.Executable(); err == nil {
		parents = append(parents, exe)
	}
	if store, err := filepath.Abs(p.dir); err == nil && p.d != insideStore {
		parents = append(parents, store+"/x")
	}
	for _, path := range parents {
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
			list = append(list, dir)
			if dir == "/" {
				break
			}
		}
	}
	return list
}

// mounted reports whether another mount begins here.
func mounted(path string, otherDevice bool) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, &st)
	return otherDevice || err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
