// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/evoseal/containment/internal/journal"
)

// fillDisk plays the role "full".
func fillDisk(dir string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		return err
	}
	cfg := config(dir)
	j, err := journal.Create(cfg, []byte(`{}`))
	if err != nil {
		return err
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 16<<10), 0o600); err != nil {
		return err
	}
	acknowledged := 0
	for err == nil {
		if _, err = j.Append(object(1500), acknowledged%2 == 0); err == nil {
			acknowledged++
		}
	}
	if !errors.Is(err, journal.ErrBroken) || !errors.Is(err, syscall.ENOSPC) || acknowledged == 0 {
		return fmt.Errorf("after %d records: got %w, want ErrBroken and ENOSPC", acknowledged, err)
	}
	if err := j.Close(); !errors.Is(err, journal.ErrBroken) {
		return fmt.Errorf("close: got %w, want ErrBroken", err)
	}
	return recover64k(cfg, ballast, acknowledged)
}

// recover64k opens the journal on the full disk, where the cut must not need more room than what it cuts, and then with
// room again.
func recover64k(cfg journal.Config, ballast string, acknowledged int) error {
	report, err := journal.Verify(cfg)
	if err != nil || report.Records != acknowledged || !report.Torn {
		return fmt.Errorf("%+v, %w; want %d records and a torn one", report, err, acknowledged)
	}
	j, err := journal.Open(cfg)
	if err != nil {
		return err
	}
	if err := j.Rotate(j.Head(), object(1<<14)); !errors.Is(err, journal.ErrIO) || !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("rotate: got %w, want ErrIO and ENOSPC", err)
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	if _, err := j.Append([]byte(`{}`), true); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if n, err := count(j); err != nil || n != acknowledged+2 {
		return fmt.Errorf("%d records, %w; want the %d acknowledged ones, a cut and a new one", n, err, acknowledged)
	}
	fmt.Println("done")
	return j.Close()
}
