// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/evoseal/containment/internal/journal"
)

// holding is a directory whose journal has these bytes.
func holding(data []byte) *memFS {
	m := newMemFS()
	m.names[name+".journal"] = &inode{name: name + ".journal", data: slices.Clone(data), disk: slices.Clone(data)}
	m.names[name+".created"] = &inode{name: name + ".created", data: []byte("x"), disk: []byte("x")}
	m.disk[name+".journal"], m.disk[name+".created"] = m.names[name+".journal"], m.names[name+".created"]
	return m
}

// sample is a journal with short and long records, with or without a rotation and the note of a cut.
func sample(t testing.TB, rotated bool) []byte {
	t.Helper()
	m := newMemFS()
	j := create(t, memConfig(m))
	fill(t, j, 0, 3)
	if rotated {
		if err := j.Rotate(j.Head(), []byte(`{"count":3}`)); err != nil {
			t.Fatal(err)
		}
		fill(t, j, 3, 5)
		file := m.names[name+".journal"]
		file.data = append(file.data, "{unfinished"...)
		_ = j.Close() // it notices the change
		j = open(t, memConfig(m.afterKill()))
	}
	if _, err := j.Append([]byte(`{"long":"`+strings.Repeat("x", 100)+`"}`), true); err != nil {
		t.Fatal(err)
	}
	fill(t, j, 5, 8)
	data, err := journal.FileBytes(j)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// content is what Open makes of the bytes: the texts of the records and whether a cut was noted at the end.
func content(t testing.TB, data []byte) (all []string, torn bool, err error) {
	t.Helper()
	m := holding(data)
	before, verifyErr := journal.Verify(memConfig(m))
	j, err := journal.Open(memConfig(m))
	if (err == nil) != (verifyErr == nil) {
		t.Fatalf("Open says %v, Verify %v", err, verifyErr)
	}
	if err != nil {
		if kept := m.names[name+".journal"].data; !bytes.Equal(kept, data) {
			t.Fatalf("refused with %v, and yet it was changed", err)
		}
		return nil, false, err
	}
	all = texts(t, j)
	if before.Torn {
		all = all[:len(all)-1]
	}
	if before.Records != len(all) || before.Torn != (before.Dropped > 0) || before.Size+before.Dropped != int64(len(data)) {
		t.Fatalf("%d records, %d bytes: the report says %+v", len(all), len(data), before)
	}
	closeIt(t, j)
	return all, before.Torn, nil
}

// intact is what is in a good journal.
func intact(t testing.TB, good []byte) []string {
	t.Helper()
	want, _, err := content(t, good)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// checkDamage demands of damaged bytes an exact prefix of the records or ErrCorrupt, and never a silent loss: only a cut
// right behind a line end cannot be seen.
func checkDamage(t testing.TB, good []byte, want []string, bad []byte) {
	t.Helper()
	got, torn, err := content(t, bad)
	switch {
	case errors.Is(err, journal.ErrCorrupt):
		return
	case err != nil:
		t.Fatalf("got %v, want ErrCorrupt", err)
	case len(got) > len(want) || !slices.Equal(got, want[:len(got)]):
		t.Fatalf("%q is no prefix of %q", got, want)
	}
	cutAtLine := bytes.HasPrefix(good, bad) && bytes.HasSuffix(bad, []byte("\n"))
	if len(got) < len(want) && !torn && !cutAtLine {
		t.Fatalf("%d of %d records, and nobody is told", len(got), len(want))
	}
}

// Every byte of a journal, with a bit flipped, the case changed, and as bytes that mean something.
func TestEveryFlip(t *testing.T) {
	t.Parallel()
	for _, rotated := range []bool{false, true} {
		good := sample(t, rotated)
		for at := range good {
			for _, b := range []byte{good[at] ^ 1, good[at] ^ 0x20, 0, '\n'} {
				bad := slices.Clone(good)
				if bad[at] = b; b == good[at] {
					continue
				}
				if _, _, err := content(t, bad); !errors.Is(err, journal.ErrCorrupt) {
					t.Fatalf("byte %d, %q to %q: got %v, want ErrCorrupt", at, good[at], b, err)
				}
			}
		}
	}
}

func TestEveryTruncation(t *testing.T) {
	t.Parallel()
	for _, rotated := range []bool{false, true} {
		good := sample(t, rotated)
		want, header := intact(t, good), bytes.IndexByte(good, '\n')+1
		for size := range len(good) {
			checkDamage(t, good, want, good[:size])
			if _, torn, err := content(t, good[:size]); (err != nil) != (size < header) || torn != (size > header && good[size-1] != '\n') {
				t.Fatalf("%d bytes: torn is %v, %v", size, torn, err)
			}
		}
	}
}

// Lines that go, come twice or change places.
func TestLines(t *testing.T) {
	t.Parallel()
	good := sample(t, true)
	lines := bytes.SplitAfter(good, []byte("\n"))
	lines = lines[:len(lines)-1]
	want := intact(t, good)
	for i := range lines {
		without := slices.Delete(slices.Clone(lines), i, i+1)
		checkDamage(t, good, want, bytes.Join(without, nil))
		twice := slices.Insert(slices.Clone(lines), i, lines[i])
		if _, _, err := content(t, bytes.Join(twice, nil)); !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("line %d twice: %v", i+1, err)
		}
		for k := range i {
			swapped := slices.Clone(lines)
			swapped[i], swapped[k] = swapped[k], swapped[i]
			if _, _, err := content(t, bytes.Join(swapped, nil)); !errors.Is(err, journal.ErrCorrupt) {
				t.Errorf("lines %d and %d swapped: %v", i+1, k+1, err)
			}
		}
	}
}

func TestTails(t *testing.T) {
	t.Parallel()
	good := sample(t, false)
	whole := len(good) - 1 // without the last line end
	for what, c := range map[string]struct {
		data []byte
		torn bool
	}{
		"zeros":                 {append(bytes.Clone(good), make([]byte, 4096)...), true},
		"garbage":               {append(bytes.Clone(good), "\xde\xad\xbe\xef"...), true},
		"almost a record":       {append(bytes.Clone(good), bytes.Repeat([]byte("x"), journal.MaxRecord-1)...), true},
		"as long as a record":   {append(bytes.Clone(good), bytes.Repeat([]byte("x"), journal.MaxRecord)...), false},
		"long zeros":            {append(bytes.Clone(good), make([]byte, 1<<20)...), false},
		"empty line":            {append(bytes.Clone(good), '\n'), false},
		"line of garbage":       {append(bytes.Clone(good), "garbage\n"...), false},
		"zeros with a line end": {append(append(bytes.Clone(good), make([]byte, 100)...), '\n'), false},
		"no line end":           {good[:whole], true},
		"zero as line end":      {append(bytes.Clone(good[:whole]), 0), false},
		"text after the record": {append(bytes.Clone(good[:whole]), "{\"n\":99"...), false},
		"nothing":               {nil, false},
		"only a line end":       {[]byte("\n"), false},
	} {
		_, torn, err := content(t, c.data)
		if torn != c.torn || !c.torn && !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("%s: torn is %v, %v; want %v or ErrCorrupt", what, torn, err, c.torn)
		}
	}
}

// A cut is noted once, with its length, and is an ordinary record from then on.
func TestCutIsNoted(t *testing.T) {
	t.Parallel()
	m := newMemFS()
	j := create(t, memConfig(m))
	fill(t, j, 0, 2)
	closeIt(t, j)
	file := m.names[name+".journal"]
	file.data = append(file.data, "0123456789"...)
	for range 2 {
		j = open(t, memConfig(m))
		wantTexts(t, j, `{"i":0}`, `{"i":1}`, "cut 10")
		closeIt(t, j)
	}
	j = open(t, memConfig(m))
	fill(t, j, 2, 3)
	wantTexts(t, j, `{"i":0}`, `{"i":1}`, "cut 10", `{"i":2}`)
}

func FuzzFlip(f *testing.F) {
	f.Add(false, uint16(3), byte('x'), uint16(0))
	f.Add(true, uint16(900), byte('\n'), uint16(1))
	f.Fuzz(func(t *testing.T, rotated bool, at uint16, b byte, drop uint16) {
		good := sample(t, rotated)
		bad := bytes.Clone(good[:len(good)-int(drop)%len(good)])
		if drop == 0 {
			bad[int(at)%len(bad)] = b
		}
		checkDamage(t, good, intact(t, good), bad)
	})
}

// FuzzOpen: whatever is in the file, Open does not panic, and what it accepts stays accepted.
func FuzzOpen(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("{}\n"))
	f.Add(sample(f, false))
	f.Add(append(sample(f, true), "tail"...))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := holding(data)
		j, err := journal.Open(memConfig(m))
		if err != nil {
			if !errors.Is(err, journal.ErrCorrupt) {
				t.Fatalf("got %v, want ErrCorrupt", err)
			}
			return
		}
		first := texts(t, j)
		fill(t, j, 0, 1)
		closeIt(t, j)
		j = open(t, memConfig(m))
		wantTexts(t, j, append(first, `{"i":0}`)...)
		closeIt(t, j)
	})
}
