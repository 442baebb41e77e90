// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/evoseal/containment/rollback/internal/object"
)

const benchObjects = 100_000

// manyObjects fills a store with one pack of small objects.
func manyObjects(b *testing.B) (*Set, []object.Key) {
	b.Helper()
	s := open(b, newDir(b))
	w := s.NewWriter("tmp", Raw)
	keys := make([]object.Key, benchObjects)
	for i := range keys {
		var err error
		if keys[i], err = w.Add(object.Blob, binary.BigEndian.AppendUint64(nil, uint64(i))); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Seal(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s, keys
}

// BenchmarkOpen100k loads the index of 100,000 objects. The target is 15 ms and 10 MB of heap.
func BenchmarkOpen100k(b *testing.B) {
	s, _ := manyObjects(b)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var again *Set
	for b.Loop() {
		var err error
		if again, err = Open(s.dir); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB-heap")
	runtime.KeepAlive(again)
}

func BenchmarkHas(b *testing.B) {
	s, keys := manyObjects(b)
	missing := make([]object.Key, len(keys))
	for i, k := range keys {
		k.Type = object.Tree
		missing[i] = k
	}
	for name, list := range map[string][]object.Key{"present": keys, "missing": missing} {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if s.Has(list[i%len(list)]) != (name == "present") {
					b.Fatal("wrong answer")
				}
			}
		})
	}
}

// source is text that compresses like program source, of the median size of a source file.
func source(i int) []byte {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	words := []string{"func ", "return ", "err != nil", "\n\t", "if ", "context", "object.", "string(", ") {", "0x", "_ = "}
	var b []byte
	for len(b) < 2300 {
		b = append(b, words[r.IntN(len(words))]...)
		b = append(b, byte('a'+r.IntN(26)))
	}
	return b
}

func BenchmarkAdd(b *testing.B) {
	for name, codec := range map[string]Codec{"s2": S2, "raw": Raw} {
		b.Run(name, func(b *testing.B) {
			w := open(b, newDir(b)).NewWriter("tmp", codec)
			defer w.Abort()
			blob := source(1)
			b.SetBytes(int64(len(blob)))
			for i := 0; b.Loop(); i++ {
				binary.BigEndian.PutUint64(blob, uint64(i))
				if _, err := w.Add(object.Blob, blob); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fill stores n blobs like source.
func fill(b *testing.B, n int) (*Set, []object.Key, int64) {
	b.Helper()
	s := open(b, newDir(b))
	w := s.NewWriter("tmp", S2)
	keys, size := make([]object.Key, n), int64(0)
	for i := range keys {
		blob := source(i)
		size += int64(len(blob))
		var err error
		if keys[i], err = w.Add(object.Blob, blob); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Seal(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s, keys, size
}

func BenchmarkGet(b *testing.B) {
	s, keys, size := fill(b, 5000)
	b.SetBytes(size / 5000)
	for i := 0; b.Loop(); i++ {
		if _, err := s.Get(keys[i%len(keys)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	s, _, size := fill(b, 20_000)
	b.SetBytes(size)
	for b.Loop() {
		if faults, err := s.Check(b.Context(), runtime.GOMAXPROCS(0), nil); err != nil || len(faults) > 0 {
			b.Fatal(err, faults)
		}
	}
}
