// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/evoseal/containment/rollback/internal/pack"
)

// corrupt says which checkpoint needs what is damaged. Errors of another kind, such as a lack of descriptors, stay what
// they are.
func corrupt(id ID, err error) error {
	var c *CorruptError
	var f *pack.Fault
	switch {
	case err == nil:
		return nil
	case errors.As(err, &c):
		if c.ID.IsZero() {
			return &CorruptError{ID: id, Object: c.Object, Why: c.Why}
		}
		return err
	case errors.As(err, &f) && errors.Is(err, pack.ErrDamaged):
		return &CorruptError{ID: id, Object: f.Object(), Why: f.Err.Error()}
	case id.IsZero():
		return fmt.Errorf("rollback: %w", err)
	}
	return fmt.Errorf("rollback: checkpoint %s: %w", id, err)
}

// noSpace makes a full disk or quota an ErrNoSpace.
func (s *Store) noSpace(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// faults is several errors at once; each is found by errors.Is and errors.As.
type faults struct{ list []error }

func (f *faults) add(err error) {
	if err != nil {
		f.list = append(f.list, err)
	}
}

// err returns nil if there is none.
func (f *faults) err() error {
	switch len(f.list) {
	case 0:
		return nil
	case 1:
		return f.list[0]
	}
	return f
}

func (f *faults) Error() string {
	return fmt.Sprintf("rollback: %d faults, the first: %v", len(f.list), f.list[0])
}

// Unwrap returns them all.
func (f *faults) Unwrap() []error { return f.list }
