// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path"
	"sync"

	"github.com/evoseal/containment/rollback/internal/files"
	"github.com/evoseal/containment/rollback/internal/object"
	"github.com/evoseal/containment/rollback/internal/pack"
)

// Names in a store.
const (
	formatFile    = "format.json"
	lockFile      = "lock"
	packsDir      = pack.Dir
	manifestsDir  = "ckpt"
	labelsFile    = "labels.log"
	treesDir      = "trees" // trees/<key>/root, cache, journal
	quarantineDir = "quarantine"
	tmpDir        = "tmp"
)

// Store is a directory with checkpoints. Its methods may be called at the same time. The zero Store is closed.
type Store struct {
	path    string     // absolute, without links
	dir     *files.Dir // the same by descriptor; all names below are relative to it
	id      string     // random, from format.json
	options Options    // with defaults
	log     *slog.Logger
	packs   *pack.Set
	tmp     string   // this process's directory for what is unfinished, relative to dir
	tmpHeld *os.File // its lock
	seen    catalogue

	hook   func(step string)     // kill points; nil in production
	inject func(op string) error // faults of file operations; nil in production

	mu      sync.Mutex
	open    bool
	running sync.WaitGroup
}

// step marks a place where a test can kill the process.
func (s *Store) step(name string) {
	if s.hook != nil {
		s.hook(name)
	}
}

// try stands before a file operation that a test can make fail.
func (s *Store) try(op string) error {
	if s.inject != nil {
		return s.inject(op)
	}
	return nil
}

func (s *Store) sync() bool { return s.options.Sync == SyncDurable }

// admit counts a call, so that Close waits for it.
func (s *Store) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return fmt.Errorf("rollback: %w", ErrClosed)
	}
	s.running.Add(1)
	return nil
}

// enter begins a call: it fails with ErrClosed, else takes the store's lock: shared, or exclusive to delete something. It
// waits for it until ctx ends. Calls may be nested if both are shared.
func (s *Store) enter(ctx context.Context, exclusive bool) (leave func(), err error) {
	return s.enterAs(ctx, lockMode{exclusive: exclusive, wait: true})
}

func (s *Store) enterAs(ctx context.Context, mode lockMode) (leave func(), err error) {
	if err := s.admit(); err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx, lockFile, mode)
	if err != nil {
		s.running.Done()
		return nil, err
	}
	leave = func() {
		unlock()
		s.running.Done()
	}
	if err := s.packs.Refresh(); err != nil { // other processes add packs, and prune
		leave()
		return nil, fmt.Errorf("rollback: %s: %w", s.path, err)
	}
	return leave, nil
}

// Close waits for running calls and gives everything back. Later calls fail with [ErrClosed].
func (s *Store) Close() error {
	s.mu.Lock()
	was := s.open
	s.open = false
	s.mu.Unlock()
	if !was {
		return nil
	}
	s.running.Wait()
	s.packs.Close()
	err := s.dir.RemoveAll(s.tmp)
	if closed := s.tmpHeld.Close(); err == nil {
		err = closed
	}
	if closed := s.dir.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("rollback: close %s: %w", s.path, err)
	}
	return nil
}

// newWriter starts a pack with this store's codec.
func (s *Store) newWriter() *pack.Writer {
	codec := pack.S2
	if s.options.Codec == CodecNone {
		codec = pack.Raw
	}
	return s.packs.NewWriter(s.tmp, codec)
}

// writeFile puts a small file into the store, whole or not at all; durably if the store is durable.
func (s *Store) writeFile(name string, data []byte) error {
	if err := s.dir.WriteFile(path.Join(s.tmp, randomName()), name, data); err != nil {
		return fmt.Errorf("rollback: write %s: %w", s.join(name), s.noSpace(err))
	}
	return nil
}

// join makes a name in the store a path, for messages.
func (s *Store) join(name string) string { return path.Join(s.path, name) }

// tree reads a directory. The error is a *CorruptError without an ID, or one of reading.
func (s *Store) tree(k object.Key) ([]object.Entry, error) {
	raw, err := s.object(k)
	if err != nil {
		return nil, err
	}
	entries, err := object.DecodeTree(raw)
	if err != nil {
		return nil, &CorruptError{Object: k.String(), Why: err.Error()}
	}
	return entries, nil
}

// object reads any object, with its hash checked. The error is a *CorruptError without an ID, or one of reading.
func (s *Store) object(k object.Key) ([]byte, error) {
	raw, err := s.packs.Get(k)
	if err != nil {
		return nil, corrupt(ID{}, err)
	}
	return raw, nil
}
