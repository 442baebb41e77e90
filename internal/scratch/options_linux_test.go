// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"errors"
	"math"
	"os"
	"testing"

	"github.com/evoseal/containment/internal/scratch"
)

func TestOptionsFaults(t *testing.T) {
	t.Parallel()
	self, other := &scratch.Owner{UID: os.Geteuid(), GID: os.Getegid()}, &scratch.Owner{UID: 70000, GID: 70000}
	for name, o := range map[string]scratch.Options{
		"no limits":             {},
		"negative bytes":        {MaxBytes: -1, MaxFiles: 1},
		"negative files":        {MaxBytes: 1, MaxFiles: -1},
		"name with a slash":     {MaxBytes: 1, MaxFiles: 1, OmitNames: []string{"a/b"}},
		"name with NUL":         {MaxBytes: 1, MaxFiles: 1, OmitNames: []string{"a\x00"}},
		"empty name":            {MaxBytes: 1, MaxFiles: 1, OmitNames: []string{""}},
		"dots":                  {MaxBytes: 1, MaxFiles: 1, OmitNames: []string{".."}},
		"omit all":              {MaxBytes: 1, MaxFiles: 1, Omit: []string{"."}},
		"omit all, disguised":   {MaxBytes: 1, MaxFiles: 1, Omit: []string{"./"}},
		"omit above":            {MaxBytes: 1, MaxFiles: 1, Omit: []string{"a/../../b"}},
		"omit by dots":          {MaxBytes: 1, MaxFiles: 1, Omit: []string{"a/../b"}},
		"omit absolute":         {MaxBytes: 1, MaxFiles: 1, Omit: []string{"/etc"}},
		"omit empty":            {MaxBytes: 1, MaxFiles: 1, Omit: []string{""}},
		"omit NUL":              {MaxBytes: 1, MaxFiles: 1, Omit: []string{"a\x00b"}},
		"sealed without owner":  {MaxBytes: 1, MaxFiles: 1, Sealed: []string{"a"}},
		"read-only, no owner":   {MaxBytes: 1, MaxFiles: 1, ReadOnly: []string{"a"}},
		"read-only, own user":   {MaxBytes: 1, MaxFiles: 1, ReadOnly: []string{"a"}, Owner: self},
		"sealed, own user":      {MaxBytes: 1, MaxFiles: 1, Sealed: []string{"a"}, Owner: self},
		"seal all":              {MaxBytes: 1, MaxFiles: 1, Sealed: []string{"."}, Owner: other},
		"owner that means none": {MaxBytes: 1, MaxFiles: 1, Owner: &scratch.Owner{UID: -1, GID: 1}},
		"group that means none": {MaxBytes: 1, MaxFiles: 1, Owner: &scratch.Owner{UID: 1, GID: -1}},
		"owner 2^32-1":          {MaxBytes: 1, MaxFiles: 1, Owner: &scratch.Owner{UID: math.MaxUint32, GID: 1}},
		"owner that wraps to 0": {MaxBytes: 1, MaxFiles: 1, Owner: &scratch.Owner{UID: math.MaxUint32 + 1, GID: 1}},
	} {
		_, err := scratch.Copy(t.Context(), t.TempDir(), t.TempDir(), o)
		if !errors.Is(err, scratch.ErrOptions) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Every mistake is named, not only the first.
func TestOptionsAllFaults(t *testing.T) {
	t.Parallel()
	o := scratch.Options{OmitNames: []string{"x/y"}, Omit: []string{".."}, ReadOnly: []string{"/"}}
	_, err := scratch.Copy(t.Context(), t.TempDir(), t.TempDir(), o)
	var all interface{ WrappedErrors() []error }
	if !errors.As(err, &all) || len(all.WrappedErrors()) != 5 {
		t.Errorf("want five faults: %v", err)
	}
}
