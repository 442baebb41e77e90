// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/files"
	"github.com/evoseal/containment/rollback/internal/pack"
)

// Open opens the store in dir and makes it, 0700, if dir is missing or empty. It removes what dead processes left
// unfinished in the store, and writes into no tree: see [Store.Recover]. Close it in the end.
//
// The error matches [ErrTarget] if dir is a link or no directory, belongs to another user, can be written to by others or lies in a tree
// that it has checkpoints of; [ErrFormat] for a later version or another key; [ErrCorrupt] if dir is neither empty nor a
// store. Damaged packs and manifests are no error here: [Store.Verify] reports them, and whatever is whole can be restored.
func Open(dir string, o *Options) (*Store, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	for i, root := range options.Roots { // what a relative one means must not change with the working directory
		if options.Roots[i], err = absolute(root); err != nil {
			return nil, fmt.Errorf("rollback: Options.Roots: %w", err)
		}
	}
	s := &Store{options: options, log: options.Logger}
	if err := s.openDir(dir); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		if s.tmpHeld != nil {
			_ = s.dir.RemoveAll(s.tmp)
			_ = s.tmpHeld.Close()
		}
		_ = s.dir.Close()
		return nil, err
	}
	s.open = true
	return s, nil
}

// openDir opens the store's directory and judges it on the descriptor that everything uses afterwards.
func (s *Store) openDir(dir string) error {
	if dir == "" {
		return &TargetError{Path: dir, Reason: "a store needs a name"}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("rollback: %w", err)
	}
	if err := s.makeDir(abs); err != nil {
		return fmt.Errorf("rollback: %w", s.noSpace(err))
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return fmt.Errorf("rollback: %w", err)
	}
	s.path = filepath.Join(parent, filepath.Base(abs))
	link, err := os.Lstat(s.path)
	if err != nil {
		return fmt.Errorf("rollback: %w", err)
	}
	switch {
	case link.Mode()&fs.ModeSymlink != 0:
		return &TargetError{Path: s.path, Reason: "it is a link; name the directory itself"}
	case !link.IsDir():
		return &TargetError{Path: s.path, Reason: "it is not a directory"}
	}
	root, err := os.OpenRoot(s.path)
	if err != nil {
		return fmt.Errorf("rollback: %w", err)
	}
	s.dir = &files.Dir{Root: root, Durable: s.sync(), Fail: s.injected}
	st, err := root.Stat(".")
	if err == nil && !os.SameFile(link, st) {
		err = &TargetError{Path: s.path, Reason: "it was changed while it was opened"}
	}
	if err == nil {
		err = s.judge(st)
	}
	if err != nil {
		_ = root.Close()
	}
	return err
}

// makeDir makes the directory and those above it as far as they are missing. A new name must be as durable as what will
// be below it, so each directory that gets one is flushed.
func (s *Store) makeDir(dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := s.makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if !s.sync() {
		return nil
	}
	f, err := os.Open(parent)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	return f.Sync()
}

// injected passes on the faults of a test for operations that change something.
func (s *Store) injected(op, _ string) error {
	if op == "open" {
		return nil
	}
	return s.try(op)
}

func (s *Store) judge(st fs.FileInfo) error {
	sys, euid := st.Sys().(*syscall.Stat_t), os.Geteuid()
	switch {
	case int(sys.Uid) != euid:
		return &TargetError{Path: s.path, Reason: fmt.Sprintf("it belongs to user %d, not to %d, who uses it", sys.Uid, euid)}
	case st.Mode().Perm()&0o022 != 0:
		return &TargetError{Path: s.path, Reason: fmt.Sprintf(
			"others can write to it (mode %#o); look at what is in it, then chmod 0700", st.Mode().Perm())}
	}
	return nil
}

// prepare reads what has to be read, after the leftovers are gone.
func (s *Store) prepare() error {
	if err := s.dir.Mkdir(tmpDir); err != nil {
		return fmt.Errorf("rollback: %s: %w", s.path, s.noSpace(err))
	}
	if err := s.takeTmp(); err != nil {
		return err
	}
	if err := s.readFormat(); err != nil {
		return err
	}
	for _, name := range []string{packsDir, manifestsDir, treesDir, quarantineDir} {
		if err := s.dir.Mkdir(name); err != nil {
			return fmt.Errorf("rollback: %s: %w", s.path, s.noSpace(err))
		}
	}
	for _, name := range []string{lockFile, labelsFile} {
		f, err := s.dir.Append(name)
		if err != nil {
			return fmt.Errorf("rollback: %s: %w", s.path, s.noSpace(err))
		}
		_ = f.Close() // nothing was written
	}
	if err := s.checkPlace(); err != nil {
		return err
	}
	var err error
	if s.packs, err = pack.Open(s.dir); err != nil {
		return fmt.Errorf("rollback: %s: %w", s.path, err)
	}
	return nil
}

// takeTmp makes this process's directory for what is unfinished, and removes those whose owner is dead: the owner holds
// the lock of the directory itself, so no process number has to be believed. Both happen under the lock of tmp.
func (s *Store) takeTmp() error {
	unlock, err := s.lock(context.Background(), tmpDir, lockMode{exclusive: true, wait: true})
	if err != nil {
		return err
	}
	defer unlock()
	s.sweepTmp()
	name := fmt.Sprintf("%s/%s-%d-%s", tmpDir, bootMark(), os.Getpid(), randomName()[:8])
	if err := s.dir.MkdirUnflushed(name); err != nil {
		return fmt.Errorf("rollback: %s: %w", s.path, s.noSpace(err))
	}
	f, err := s.dir.OpenToRead(name)
	if err == nil {
		var free bool
		if free, err = tryLock(f, true); err == nil && !free {
			err = ErrLocked
		}
		if err != nil {
			_ = f.Close()
		}
	}
	if err != nil {
		_ = s.dir.Remove(name)
		return fmt.Errorf("rollback: lock %s: %w", s.join(name), err)
	}
	s.tmp, s.tmpHeld = name, f
	return nil
}

// sweepTmp removes what it can. What stays is no danger: nothing in tmp is ever believed.
func (s *Store) sweepTmp() {
	entries, err := fs.ReadDir(s.dir.FS(), tmpDir)
	if err != nil {
		s.log.Warn("rollback: leftovers stay", "store", s.path, "error", err)
		return
	}
	for _, e := range entries {
		name := tmpDir + "/" + e.Name()
		f, err := s.dir.OpenToRead(name)
		if err == nil {
			var dead bool
			if dead, err = tryLock(f, true); dead {
				err = s.dir.RemoveAll(name)
				s.log.Info("rollback: removed what a dead process left", "store", s.path, "name", name)
			}
			dropLock(f)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("rollback: a leftover stays", "store", s.path, "name", name, "error", err)
		}
	}
}

// bootMark tells leftovers of an earlier boot to people; nothing depends on it.
func bootMark() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	sum := sha256.Sum256(id)
	return fmt.Sprintf("%x", sum[:4])
}

// free returns how many bytes the store's file system has for this user.
func (s *Store) free() (int64, error) {
	f, err := s.dir.OpenToRead(".")
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	st, err := fsys.Statfs(int(f.Fd()))
	if err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Bsize, nil
}
