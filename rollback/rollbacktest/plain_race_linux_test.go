// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"os"
	"time"
)

// until waits for what somebody else does meanwhile. A mutant whose defect shows only in a race does not leave it to
// luck, but waits where it is open to it; in vain only where nobody does anything.
func until(holds func() bool) {
	for begin := time.Now(); !holds() && time.Since(begin) < 2*time.Second; {
		time.Sleep(100 * time.Microsecond)
	}
}

// slowReader reads the beginning of a file, and the rest when a writer has been at its last byte.
type slowReader struct {
	f    *os.File
	last int64
	done bool
}

func (s *slowReader) Read(b []byte) (int, error) {
	n, err := s.f.Read(b)
	if s.done || s.last < 0 || err != nil {
		return n, err
	}
	s.done = true
	ends := func() (b [1]byte) {
		_, _ = s.f.ReadAt(b[:], s.last)
		return b
	}
	before := ends()
	until(func() bool { return ends() != before })
	return n, nil
}
