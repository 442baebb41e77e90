// SPDX-License-Identifier: Apache-2.0

package binpack_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/examples/evolve/internal/binpack"
)

func TestRead(t *testing.T) {
	t.Parallel()
	got, err := binpack.Read(strings.NewReader(" 2\n u1_00\n 150 3 2\n42\n69\n67\n t60_00 \n 100.0 2 1\n\n49.5 \r\n26.00\n"))
	want := []binpack.Instance{
		{Name: "u1_00", Capacity: 150, Scale: 1, Best: 2, Items: []int{42, 69, 67}},
		{Name: "t60_00", Capacity: 1000, Scale: 10, Best: 1, Items: []int{495, 260}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatal(err, diff)
	}
	var b bytes.Buffer
	if err := binpack.Write(&b, got); err != nil {
		t.Fatal(err)
	}
	again, err := binpack.Read(&b)
	if diff := cmp.Diff(want, again); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		line       int
	}{
		{"empty", "", 0},
		{"none", "0", 1},
		{"negative", "-1", 1},
		{"too many", "1001", 1},
		{"a fraction of an instance", "1.5\n", 1},
		{"no instance", "1\n", 1},
		{"a name alone", "1\na\n", 2},
		{"one short", "2\na\n10 1 1\n5\n", 4},
		{"an item short", "1\na\n10 2 1\n5\n", 4},
		{"an item more", "1\na\n10 1 1\n5\n6\n", 5},
		{"too large", "1\na\n10 1 1\n11\n", 4},
		{"too large by a decimal", "1\na\n10 1 1\n10.1\n", 4},
		{"nothing", "1\na\n10 1 1\n0\n", 4},
		{"nothing with decimals", "1\na\n10 1 1\n0.000\n", 4},
		{"no capacity", "1\na\n0 1 1\n1\n", 4},
		{"exponent", "1\na\n1e2 1 1\n1\n", 3},
		{"hexadecimal", "1\na\n0x10 1 1\n1\n", 3},
		{"infinite", "1\na\nInf 1 1\n1\n", 3},
		{"not a number", "1\na\n10 1 1\nNaN\n", 4},
		{"sign", "1\na\n10 1 1\n+5\n", 4},
		{"point alone", "1\na\n10 1 1\n.\n", 4},
		{"two points", "1\na\n10 1 1\n1.2.3\n", 4},
		{"digits of another script", "1\na\n10 1 1\n٣\n", 4},
		{"many decimals", "1\na\n10 1 1\n1.23456\n", 4},
		{"overflow", "1\na\n99999999999999999999 1 1\n1\n", 3},
		{"a huge capacity", "1\na\n999999999 1 1\n1\n", 4},
		{"no items", "1\na\n10 0 1\n", 3},
		{"announces too many items", "1\na\n10 1000001 1\n", 3},
		{"announces too many items in all", "2\na\n10 1 1\n1\nb\n10 1000000 1\n", 6},
		{"a long name", "1\n" + strings.Repeat("a", 65) + "\n10 1 1\n1\n", 2},
		{"a name that clears the screen", "1\n\x1b[2J\n10 1 1\n1\n", 2},
		{"a name that is no text", "1\n\xff\xfe\n10 1 1\n1\n", 2},
		{"a long line", "1\na\n10 1 1\n" + strings.Repeat("1", 5000), 4},
		{"a program", "#!/bin/sh\nrm -rf .\n", 1},
	} {
		got, err := binpack.Read(strings.NewReader(c.text))
		var format *binpack.FormatError
		if got != nil || !errors.As(err, &format) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		} else if format.Line != c.line {
			t.Errorf("%s: line %d: %v", c.name, format.Line, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"1\na\n10 1 1\n5\n", "2\nu 150 2 1 42 69\nv 100.0 1 1 49.5\n", "1\na\n10 2 1\n5\n", "0", ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		instances, err := binpack.Read(bytes.NewReader(text))
		if err != nil {
			var format *binpack.FormatError
			if instances != nil || !errors.As(err, &format) {
				t.Fatal(instances, err)
			}
			return
		}
		for _, in := range instances {
			for _, item := range in.Items {
				if item < 1 || item > in.Capacity {
					t.Fatalf("item %d in %d", item, in.Capacity)
				}
			}
		}
		var b bytes.Buffer
		if err := binpack.Write(&b, instances); err != nil {
			t.Fatal(err)
		}
		again, err := binpack.Read(&b)
		if diff := cmp.Diff(instances, again); diff != "" || err != nil {
			t.Fatal(err, diff)
		}
	})
}
