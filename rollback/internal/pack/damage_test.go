// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"testing"

	"github.com/evoseal/containment/rollback/internal/files"
	"github.com/evoseal/containment/rollback/internal/object"
)

// small is a store with one pack of three objects, and the bytes of that pack.
func small(t testing.TB) (d *files.Dir, keys []object.Key, blobs [][]byte, file string, data []byte) {
	t.Helper()
	d = newDir(t)
	blobs = [][]byte{[]byte("one"), bytes.Repeat([]byte("two "), 40), {}}
	keys = store(t, open(t, d), S2, blobs...)
	file = names(t, d, Dir)[0]
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return d, keys, blobs, file, data
}

func write(t testing.TB, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// soundOrError fails for an object that is read wrong, and returns how many are not read.
func soundOrError(t testing.TB, s *Set, keys []object.Key, blobs [][]byte) (lost int) {
	t.Helper()
	for i, k := range keys {
		switch got, err := s.Get(k); {
		case err != nil && !errors.Is(err, ErrDamaged):
			t.Errorf("object %d: %v is not damage", i, err)
		case err != nil:
			lost++
		case !bytes.Equal(got, blobs[i]):
			t.Errorf("object %d: other bytes", i)
		}
	}
	return lost
}

// TestEveryBit: whichever bit of a pack is wrong, every object is right or an error, and Check notices it, both on a set
// that was opened before and on a new one.
func TestEveryBit(t *testing.T) {
	t.Parallel()
	d, keys, blobs, file, data := small(t)
	before := open(t, d)
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	flip := func(i int) {
		data[i/8] ^= 1 << (i % 8)
		if _, err := f.WriteAt(data[i/8:i/8+1], int64(i/8)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 8 * len(data) {
		flip(i)
		s := open(t, d)
		if lost := soundOrError(t, s, keys, blobs); lost > 1 {
			t.Errorf("bit %d of byte %d: %d objects are lost", i%8, i/8, lost)
		}
		for name, set := range map[string]*Set{"new": s, "old": before} {
			if faults, err := set.Check(t.Context(), 1, nil); err != nil || len(faults) == 0 {
				t.Errorf("bit %d of byte %d: the %s set finds nothing, %v", i%8, i/8, name, err)
			}
		}
		s.Close()
		flip(i)
	}
}

func TestEveryLength(t *testing.T) {
	t.Parallel()
	d, keys, blobs, file, data := small(t)
	for n := range data {
		write(t, file, data[:n])
		s := open(t, d)
		soundOrError(t, s, keys, blobs)
		for _, k := range keys {
			if s.Has(k) {
				t.Errorf("a pack of %d of %d bytes vouches", n, len(data))
			}
		}
		if faults, err := s.Check(t.Context(), 1, nil); err != nil || len(faults) == 0 {
			t.Errorf("%d bytes: nothing found, %v", n, err)
		}
		s.Close()
	}
	write(t, file, append(bytes.Clone(data), 0))
	s := open(t, d)
	if soundOrError(t, s, keys, blobs) > 0 || s.Has(keys[0]) {
		t.Error("a byte too much: objects are lost, or the pack vouches")
	}
}

// TestTableFromRecords: with the table gone all objects are read, none is vouched for, and storing them again heals.
func TestTableFromRecords(t *testing.T) {
	t.Parallel()
	d, keys, blobs, file, data := small(t)
	write(t, file, data[:len(data)-trailerLen-5])
	s := open(t, d)
	if lost := soundOrError(t, s, keys, blobs); lost > 0 {
		t.Errorf("%d objects are lost", lost)
	}
	for _, k := range keys {
		if s.Has(k) {
			t.Error("a damaged pack vouches")
		}
	}
	store(t, s, S2, blobs...)
	if !s.Has(keys[0]) || len(names(t, d, Dir)) != 1 {
		t.Error("not stored again under the same name")
	}
	if faults, err := s.Check(t.Context(), 1, nil); err != nil || len(faults) > 0 {
		t.Error(err, faults)
	}
}

// TestSecondCopyIsUsed: an object that is damaged in one pack is taken from another, and stored again meanwhile.
func TestSecondCopyIsUsed(t *testing.T) {
	t.Parallel()
	d, keys, blobs, file, data := small(t)
	bad := bytes.Clone(data)
	bad[len(fileMagic)+headerLen] ^= 1 // the first byte of the first object
	write(t, file, bad)
	s := open(t, d)
	if _, err := s.Get(keys[0]); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	if s.Has(keys[0]) || !s.Has(keys[1]) {
		t.Error("what was found damaged is present, or what is sound is not")
	}
	store(t, s, S2, []byte("other"), blobs[0])
	if soundOrError(t, s, keys, blobs) > 0 || !s.Has(keys[0]) {
		t.Error("the second copy is not used")
	}
	faults, err := s.Check(t.Context(), 2, nil)
	if err != nil || len(faults) != 1 || faults[0].Key != keys[0] || faults[0].Offset != int64(len(fileMagic)) {
		t.Errorf("%v, %v", err, faults)
	}
}

// TestLyingRecord: a record whose header, CRC and table agree, but whose bytes are another object's.
func TestLyingRecord(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	lie := object.Sum(object.Blob, []byte("what was asked for"))
	record := appendRecord(nil, lie, []byte("something else"), Raw)
	file := append([]byte(fileMagic), record...)
	r := row{key: lie, offset: int64(len(fileMagic)), stored: int64(len(record) - headerLen - crcLen), raw: 14}
	tail, name := footer(appendRow(nil, r), int64(len(file)))
	f, err := d.Create(fileName(name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(append(file, tail...)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, d)
	if !s.Has(lie) {
		t.Fatal("the table is refused: this test proves nothing")
	}
	if _, err := s.Get(lie); !errors.Is(err, ErrDamaged) {
		t.Errorf("other bytes under this name: %v", err)
	}
	if faults, _ := s.Check(t.Context(), 1, nil); len(faults) != 1 {
		t.Errorf("%v", faults)
	}
}

func TestSwappedPacks(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	s := open(t, d)
	a, b := store(t, s, Raw, []byte("a")), store(t, s, Raw, []byte("b"))
	list := names(t, d, Dir)
	for _, move := range [][2]string{{list[0], list[0] + "x"}, {list[1], list[0]}, {list[0] + "x", list[1]}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, d)
	soundOrError(t, s, []object.Key{a[0], b[0]}, [][]byte{[]byte("a"), []byte("b")})
	if faults, _ := s.Check(t.Context(), 1, nil); len(faults) != 2 || s.Has(a[0]) {
		t.Errorf("two packs under each other's name: %v", faults)
	}
}

func TestGapsAreFound(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	k := object.Sum(object.Blob, []byte("x"))
	file := append([]byte(fileMagic), "hidden"...)
	r := row{key: k, offset: int64(len(file)), stored: 1, raw: 1}
	file = appendRecord(file, k, []byte("x"), Raw)
	tail, name := footer(appendRow(nil, r), int64(len(file)))
	write(t, d.Name()+"/"+fileName(name), append(file, tail...))
	s := open(t, d)
	if faults, _ := s.Check(t.Context(), 1, nil); len(faults) != 1 || !s.Has(k) {
		t.Errorf("%v", faults)
	}
}

// TestBombs: lengths that would take too much memory are refused before it is taken.
func TestBombs(t *testing.T) {
	t.Parallel()
	record := appendRecord(nil, object.Sum(object.Blob, nil), bytes.Repeat([]byte("b"), 5000), S2)
	be := binary.BigEndian
	for name, change := range map[string]func(b []byte){
		"raw length":       func(b []byte) { be.PutUint32(b[8:], 1<<32-1) },
		"stored length":    func(b []byte) { be.PutUint32(b[12:], 1<<32-1) },
		"type":             func(b []byte) { b[4] = 7 },
		"codec":            func(b []byte) { b[5] = 7 },
		"length within S2": func(b []byte) { copy(b[headerLen:], "\xff\xff\xff\xff\x0f") },
	} {
		b := bytes.Clone(record)
		change(b)
		be.PutUint32(b[len(b)-crcLen:], crc32.Checksum(b[:len(b)-crcLen], castagnoli))
		h, err := parseHeader(b)
		if err == nil {
			_, err = h.unpack(b[headerLen:len(b)-crcLen], nil)
		}
		if err == nil || errors.Is(err, errHash) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnreadableIsNoDamage: a lack of descriptors or of permission says nothing about the bytes.
func TestUnreadableIsNoDamage(t *testing.T) {
	t.Parallel()
	d, keys, _, _, _ := small(t)
	d.Fail = func(op, _ string) error {
		if op == "open" {
			return os.ErrPermission
		}
		return nil
	}
	s := open(t, d)
	if _, err := s.Get(keys[0]); !errors.Is(err, os.ErrPermission) || errors.Is(err, ErrDamaged) || s.Has(keys[0]) {
		t.Errorf("an unreadable pack is used, or called damaged: %v", err)
	}
	faults, _ := s.Check(t.Context(), 1, nil)
	if len(faults) != 1 || errors.Is(faults[0], ErrDamaged) || !errors.Is(faults[0], os.ErrPermission) {
		t.Errorf("%v", faults)
	}
	d.Fail = nil
	refresh(t, s)
	if _, err := s.Get(keys[0]); err != nil || !s.Has(keys[0]) {
		t.Errorf("readable again: %v", err)
	}
}

func FuzzReadTable(f *testing.F) {
	_, _, _, file, data := small(f)
	name, _ := parseName(file[len(file)-len(suffix)-64:])
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Add([]byte(fileMagic + trailerMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		tab, end, err := readTable(r, int64(len(data)), name)
		if err == nil {
			if tail, _ := footer(tab, end); !bytes.HasSuffix(data, tail) {
				t.Error("the table is not the one of the file")
			}
		} else if !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
		again := recoverTable(r, int64(len(data)))
		for i := range again.rows() {
			if rec := again.at(i); rec.offset+rec.size() > int64(len(data)) {
				t.Errorf("record %d is outside the file", i)
			}
		}
	})
}
