// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/wire"
)

type message struct {
	Word  uint64
	Int   int
	Num   int64
	Text  string
	Bytes []byte
	Flag  bool
	List  []string
	Pairs []pair
}

type pair struct {
	A int
	B bool
}

func (m *message) fields(c wire.Coder) {
	c.Word(&m.Word)
	wire.Int(c, &m.Int)
	c.Number(&m.Num)
	c.Text(&m.Text)
	wire.Bytes(c, &m.Bytes)
	c.Flag(&m.Flag)
	wire.Texts(c, &m.List)
	wire.Slice(c, &m.Pairs, func(p *pair) {
		wire.Int(c, &p.A)
		c.Flag(&p.B)
	})
}

func encode(m *message) []byte {
	w := &wire.Writer{}
	m.fields(w)
	return w.Bytes()
}

func decode(data []byte) (*message, error) {
	m, r := new(message), wire.NewReader(data)
	m.fields(r)
	return m, r.Err()
}

func full() *message {
	return &message{
		Word: math.MaxUint64, Int: -1, Num: math.MinInt64, Text: "\xff\x00\n", Bytes: []byte{0, 255}, Flag: true,
		List: []string{"", "a"}, Pairs: []pair{{1, true}, {-2, false}},
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range []*message{full(), {Bytes: []byte{}}} {
		got, err := decode(encode(want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// What was cut off or lengthened is refused, never half understood, and so is a flag that is neither.
func TestDamaged(t *testing.T) {
	t.Parallel()
	data := encode(full())
	for n := range data {
		if _, err := decode(data[:n]); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("the first %d of %d bytes: %v", n, len(data), err)
		}
	}
	if _, err := decode(append(bytes.Clone(data), 0)); !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("a byte too many: %v", err)
	}
	var flag bool
	r := wire.NewReader([]byte{2})
	if r.Flag(&flag); r.Err() == nil || flag {
		t.Errorf("2 is the flag %t", flag)
	}
}

// A number says nothing about memory.
func TestNoAllocationByNumber(t *testing.T) {
	for _, n := range []int64{1 << 40, math.MaxInt64, -1} {
		data := binary.AppendVarint(nil, n)
		data = append(data, make([]byte, 100)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var list []string
		wire.Texts(wire.NewReader(data), &list)
		var text string
		wire.NewReader(data).Text(&text)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<16 || len(list) > 0 || text != "" {
			t.Errorf("%d: %d bytes allocated, %d elements, text %q", n, grown, len(list), text)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(encode(full()))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 127})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err != nil {
			return
		}
		if again, err := decode(encode(m)); err != nil || !cmp.Equal(m, again) {
			t.Errorf("%+v became %+v, %v", m, again, err)
		}
	})
}
