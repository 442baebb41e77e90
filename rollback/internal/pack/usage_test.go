// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"errors"
	"testing"

	"github.com/evoseal/containment/rollback/internal/object"
)

// TestRepackOverItself: a repack whose result is one of the packs that it was to replace must not remove it.
func TestRepackOverItself(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	s := open(t, d)
	keys := store(t, s, Raw, []byte("live"), []byte("dead"))
	only := store(t, s, Raw, []byte("other"))
	live := func(k object.Key) bool { return k == keys[0] || k == only[0] }
	for range 3 { // the second time the only pack is what the repack makes
		if _, err := s.Repack(t.Context(), "tmp", s.Usage(live), live, func() {}); err != nil {
			t.Fatal(err)
		}
		for _, set := range []*Set{s, open(t, d)} {
			for _, k := range []object.Key{keys[0], only[0]} {
				if _, err := set.Get(k); err != nil {
					t.Error(err)
				}
			}
			if set.Has(keys[1]) || len(names(t, d, Dir)) != 1 {
				t.Error("the dead object, or an old pack, is left")
			}
		}
	}
}

// TestRepackOfDamage: what cannot be copied stops it, and nothing is removed.
func TestRepackOfDamage(t *testing.T) {
	t.Parallel()
	d, _, _, file, data := small(t)
	bad := bytes.Clone(data)
	bad[len(fileMagic)+headerLen] ^= 1
	write(t, file, bad)
	s := open(t, d)
	every := func(object.Key) bool { return true }
	_, err := s.Repack(t.Context(), "tmp", s.Usage(every), every, func() { t.Error("written") })
	if !errors.Is(err, ErrDamaged) || len(names(t, d, Dir)) != 1 || len(names(t, d, "tmp")) != 0 {
		t.Errorf("%v; %q", err, names(t, d, Dir))
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	s := open(t, newDir(t))
	keys := store(t, s, Raw, []byte("a"), []byte("bcd"))
	u := s.Usage(func(k object.Key) bool { return k == keys[0] })
	if len(u) != 1 || u[0].Objects != 2 || u[0].Live != 1 || u[0].Raw != 4 || u[0].Damaged ||
		u[0].LiveStored != headerLen+1+crcLen || u[0].Stored != 2*(headerLen+crcLen)+4 || s.StoredLen(keys[1]) != headerLen+3+crcLen {
		t.Errorf("%+v", u)
	}
	if err := s.Remove(nil); err != nil {
		t.Error(err)
	}
}
