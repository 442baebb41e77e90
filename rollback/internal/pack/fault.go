// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"errors"
	"fmt"

	"github.com/evoseal/containment/rollback/internal/object"
)

// ErrDamaged: a pack or an object is not what was written. Other errors of reading, such as a lack of descriptors, do
// not match it.
var ErrDamaged = errors.New("damaged")

// Fault says what is wrong with a pack or an object. It matches ErrDamaged unless Err is an error of reading.
type Fault struct {
	Pack   string     // its file, relative to the store; empty: no pack has the object
	Offset int64      // of the record, in bytes; 0: the whole pack
	Key    object.Key // of the object; zero: the whole pack
	Err    error
}

func (f *Fault) Error() string { return f.Object() + ": " + f.Err.Error() }

// Unwrap returns what was found.
func (f *Fault) Unwrap() error { return f.Err }

// damage is an error that matches ErrDamaged.
type damage struct{ error }

func (damage) Is(target error) bool { return target == ErrDamaged }
func (d damage) Unwrap() error      { return d.error }

func damagef(format string, args ...any) error { return damage{fmt.Errorf(format, args...)} }

// Object names what is damaged: a file and an offset, or an object that no file has.
func (f *Fault) Object() string {
	switch {
	case f.Pack == "":
		return f.Key.String()
	case f.Key == object.Key{}:
		return f.Pack
	}
	return fmt.Sprintf("%s at %d, %s", f.Pack, f.Offset, f.Key)
}
