// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"time"
)

// The steps, in the order in which a round takes them. The floor of each is a bare walk that stats everything.
const (
	first      = "first checkpoint"
	noChange   = "nothing changed"
	tenEdits   = "10 files changed"
	tenBack    = "restore of 10 files"
	halfBack   = "restore of half"
	verifyAll  = "verify"
	heapPeak   = "heap, MiB"
	storeSize  = "store, MiB"
	floorOf    = "statx walk"
	editedHalf = 2
)

var steps = []string{first, noChange, tenEdits, tenBack, halfBack, verifyAll, heapPeak, storeSize}

type bench struct {
	dir   string
	peers []peer
	files int
	bytes int64
	times map[string]map[string][]float64 // step, peer: seconds or MiB
}

func (b *bench) tree(p peer) string { return filepath.Join(b.dir, "tree "+p.name()) }

// prepare makes one tree a peer, since each restores its own.
func (b *bench) prepare(_ context.Context, roots []string, n int) (err error) {
	b.files = n
	for _, p := range b.peers {
		if b.bytes, err = makeTree(b.tree(p), roots, n); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) note(step, who string, value float64) {
	if b.times[step] == nil {
		b.times[step] = map[string][]float64{}
	}
	b.times[step][who] = append(b.times[step][who], value)
}

// each lets all peers do a step in turn, and times it.
func (b *bench) each(round int, step string, do func(i int, p peer) error) error {
	for k := range b.peers {
		i := (k + round) % len(b.peers)
		begin := time.Now()
		err := do(i, b.peers[i])
		if took := time.Since(begin).Seconds(); err == nil {
			b.note(step, b.peers[i].name(), took)
		} else if !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("%s: %s: %w", b.peers[i].name(), step, err)
		}
	}
	return nil
}

// round takes all steps once, with new stores.
func (b *bench) round(ctx context.Context, round int) error {
	n := len(b.peers)
	files, ids, edited := make([][]string, n), make([]string, n), make([]string, n)
	for i, p := range b.peers {
		store := filepath.Join(b.dir, fmt.Sprint("store ", p.name(), " ", round))
		defer os.RemoveAll(store)
		defer os.RemoveAll(store + "-cache")
		var err error
		if files[i], err = regular(b.tree(p)); err != nil {
			return err
		}
		if err = p.start(ctx, b.tree(p), store); err != nil {
			return err
		}
	}
	change := func(count, salt int) error {
		for i := range b.peers {
			if err := edit(files[i], count, salt+round); err != nil {
				return err
			}
		}
		time.Sleep(50 * time.Millisecond) // what was just written is read once more by all that mind the clock
		return nil
	}
	for _, s := range []struct {
		step string
		prep func() error
		do   func(i int, p peer) error
	}{
		{first, nil, func(i int, p peer) (err error) { ids[i], err = p.checkpoint(ctx); return err }},
		{noChange, nil, func(_ int, p peer) error { _, err := p.checkpoint(ctx); return err }},
		{noChange, func() error { return b.floor(round) }, func(_ int, p peer) error {
			_, err := p.checkpoint(ctx)
			return err
		}},
		{tenEdits, func() error { return change(10, 1) }, func(i int, p peer) (err error) {
			edited[i], err = p.checkpoint(ctx)
			return err
		}},
		{tenBack, func() error { return change(10, 2) }, func(i int, p peer) error { return p.restore(ctx, edited[i]) }},
		{halfBack, func() error { return change(b.files/editedHalf, 3) },
			func(i int, p peer) error { return p.restore(ctx, ids[i]) }},
		{verifyAll, nil, func(_ int, p peer) error { return p.verify(ctx) }},
	} {
		if s.prep != nil {
			if err := s.prep(); err != nil {
				return err
			}
		}
		if err := b.each(round, s.step, s.do); err != nil {
			return err
		}
	}
	return b.sizes(round)
}

// floor times the walk over each tree.
func (b *bench) floor(int) error {
	for _, p := range b.peers {
		begin := time.Now()
		n, err := walk(b.tree(p))
		if err != nil {
			return err
		}
		if n < b.files {
			return fmt.Errorf("the walk saw %d entries of more than %d", n, b.files)
		}
		b.note(noChange, floorOf, time.Since(begin).Seconds())
	}
	return nil
}

func (b *bench) sizes(round int) error {
	for _, p := range b.peers {
		paths, err := regular(filepath.Join(b.dir, fmt.Sprint("store ", p.name(), " ", round)))
		if err != nil {
			return err
		}
		var sum int64
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			sum += info.Size()
		}
		b.note(storeSize, p.name(), float64(sum)/(1<<20))
	}
	return nil
}

// heap is taken in a round of its own: looking costs time.
func (b *bench) heap(ctx context.Context) error {
	p := &ours{}
	store := filepath.Join(b.dir, "store heap")
	if err := p.start(ctx, b.tree(p), store); err != nil {
		return err
	}
	defer os.RemoveAll(store)
	done, peak := make(chan bool), make(chan uint64)
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		var most uint64
		for {
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(2 * time.Millisecond):
				metrics.Read(sample)
				most = max(most, sample[0].Value.Uint64())
			}
		}
	}()
	var err error
	var id string
	for range 2 {
		if id, err = p.checkpoint(ctx); err != nil {
			break
		}
	}
	if err == nil {
		err = p.restore(ctx, id)
	}
	close(done)
	b.note(heapPeak, p.name(), float64(<-peak)/(1<<20))
	return err
}
