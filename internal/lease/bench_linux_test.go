// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"testing"

	"github.com/evoseal/containment/internal/lease"
)

func BenchmarkLease(b *testing.B) {
	d := open(b, b.TempDir())
	for b.Loop() {
		l, err := d.Acquire(lease.Record{ID: lease.NewID(), Scratch: []string{"/tmp/scratch"}, UID: 70000})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSlot(b *testing.B) {
	s := openSlots(b, b.TempDir(), 64)
	for b.Loop() {
		slot, err := s.Take()
		if err != nil {
			b.Fatal(err)
		}
		if err := slot.Release(); err != nil {
			b.Fatal(err)
		}
	}
}
