// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/evoseal/containment/rollback/internal/object"
)

// batchLen is about how much one read of a check takes in.
const batchLen = 4 << 20

// Check reads objects and hashes them, with as many workers, and returns every fault, in the order of the packs and
// offsets. With want nil it checks all that the packs have: each table against its hash and against the records, which
// follow each other without a gap, and each record's CRC and bytes. Otherwise it checks the objects that are wanted, in
// every place where they are; what no pack has is not its business.
func (s *Set) Check(ctx context.Context, workers int, want func(object.Key) bool) ([]*Fault, error) {
	c := &check{set: s}
	batches := make(chan batch)
	var wg sync.WaitGroup
	for range max(1, workers) {
		wg.Go(func() {
			var b checker
			for job := range batches {
				c.found(b.check(s, job)...)
			}
		})
	}
	err := c.feed(ctx, batches, want)
	close(batches)
	wg.Wait()
	slices.SortFunc(c.faults, func(a, b *Fault) int {
		return cmp.Or(cmp.Compare(a.Pack, b.Pack), cmp.Compare(a.Offset, b.Offset))
	})
	return c.faults, err
}

type check struct {
	set    *Set
	mu     sync.Mutex
	faults []*Fault
}

func (c *check) found(faults ...*Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, faults...)
}

// batch is some records of a pack, in the order of their offsets.
type batch struct {
	pack *packFile
	rows []row
}

func (c *check) feed(ctx context.Context, batches chan<- batch, want func(object.Key) bool) error {
	for _, p := range c.set.all() {
		if want == nil {
			c.table(p)
		}
		rows := p.byOffset(want)
		for len(rows) > 0 {
			n := 1
			for n < len(rows) && rows[n].offset+rows[n].size()-rows[0].offset <= batchLen {
				n++
			}
			select {
			case batches <- batch{p, rows[:n]}:
			case <-ctx.Done():
				return ctx.Err()
			}
			rows = rows[n:]
		}
	}
	return nil
}

// all returns the packs in the order of their names.
func (s *Set) all() []*packFile {
	s.mu.RLock()
	defer s.mu.RUnlock()
	packs := slices.Clone(s.packs)
	slices.SortFunc(packs, func(a, b *packFile) int { return cmp.Compare(a.path, b.path) })
	return packs
}

// table reads the table once more, since what is in memory proves nothing about the disk.
func (c *check) table(p *packFile) {
	again := p
	if p.fault == nil {
		again = load(c.set.dir, p.name)
	}
	err := again.fault
	if err == nil && !bytes.Equal(again.table, p.table) {
		err = damagef("the table changed")
	}
	if err == nil {
		err = p.gaps()
	}
	if f := (*Fault)(nil); errors.As(err, &f) {
		c.found(f)
	} else if err != nil {
		c.found(&Fault{Pack: p.path, Err: err})
	}
}

// gaps reports bytes that belong to no record.
func (p *packFile) gaps() error {
	at := int64(len(fileMagic))
	for _, r := range p.byOffset(nil) {
		if r.offset != at {
			return damagef("a record is expected at %d, the table has the next one at %d", at, r.offset)
		}
		at += r.size()
	}
	if at != p.end {
		return damagef("the last record ends at %d, not at %d", at, p.end)
	}
	return nil
}

// byOffset returns the wanted rows in the order of the records.
func (p *packFile) byOffset(want func(object.Key) bool) []row {
	rows := make([]row, 0, p.table.rows())
	for i := range p.table.rows() {
		if r := p.table.at(i); want == nil || want(r.key) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.offset, b.offset) })
	return rows
}

// checker has the buffers of a worker.
type checker struct{ record, raw []byte }

// check reads a batch at once, or record by record if that fails.
func (c *checker) check(s *Set, b batch) (faults []*Fault) {
	f, done, err := s.handles.get(b.pack)
	if err != nil {
		return []*Fault{{Pack: b.pack.path, Err: err}}
	}
	defer done()
	first, last := b.rows[0], b.rows[len(b.rows)-1]
	n := int(last.offset + last.size() - first.offset)
	c.record = grow(c.record[:0], n)[:n]
	whole := readAt(f, c.record, first.offset)
	for _, r := range b.rows {
		record := c.record[r.offset-first.offset:][:r.size()]
		err := whole
		if err != nil {
			err = readAt(f, record, r.offset)
		}
		if err == nil {
			err = c.one(r, record)
		}
		if err != nil {
			faults = append(faults, &Fault{Pack: b.pack.path, Offset: r.offset, Key: r.key, Err: err})
		}
	}
	return faults
}

func (c *checker) one(r row, record []byte) error {
	if err := checkCRC(record); err != nil {
		return err
	}
	raw, err := r.unpack(record, c.raw)
	if r.raw != r.stored && cap(raw) > cap(c.raw) && cap(raw) <= 2*object.MaxBlob {
		c.raw = raw // decompressed, so not a part of the record
	}
	return err
}

func checkCRC(record []byte) error {
	body, sum := record[:len(record)-crcLen], record[len(record)-crcLen:]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(sum) {
		return damagef("the CRC of the record is wrong")
	}
	return nil
}
