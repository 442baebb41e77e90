// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/evoseal/containment/internal/scratch"
)

// workspace is what a small project looks like: 1,000 files in 50 directories, 20 MiB, most files a few KiB, a few large.
func workspace(b *testing.B) string {
	top := plant(b)
	for i := range 1000 {
		size := 2<<10 + i%7*1500
		if i%50 == 0 {
			size = 730 << 10
		}
		data := make([]byte, size)
		rand.Read(data)
		dir := filepath.Join(top, fmt.Sprintf("pkg%d/sub%d", i%10, i%5))
		check(b, os.MkdirAll(dir, 0o755))
		check(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d", i)), data, 0o644))
	}
	return top
}

func oneLarge(b *testing.B) string {
	data := make([]byte, 15<<20)
	rand.Read(data)
	return plant(b, entry{"binary", file(string(data), 0o755)})
}

// BenchmarkCopy compares with cp -a, in turns, on the disk of the temporary directory and in memory. It reports medians in
// milliseconds and their ratio. The time of starting cp is part of using it, and small: see the figures in memory.
func BenchmarkCopy(b *testing.B) {
	for _, c := range []struct {
		name string
		make func(*testing.B) string
	}{{"tree", workspace}, {"file15M", oneLarge}} {
		src := c.make(b)
		for name, place := range map[string]string{"disk": os.TempDir(), "memory": memory} {
			b.Run(c.name+"/"+name, func(b *testing.B) { againstCp(b, src, place) })
		}
	}
}

// againstCp removes the copies at the end only. Ext4 without a journal passes over inodes that were freed within the last
// seconds, one by one, and a benchmark that removes as it goes measures that.
func againstCp(b *testing.B, src, place string) {
	all, err := os.MkdirTemp(place, "scratch-bench")
	check(b, err)
	b.Cleanup(func() {
		if err := scratch.Remove(context.Background(), all); err != nil {
			b.Error(err)
		}
	})
	var ours, theirs []time.Duration
	for b.Loop() {
		ours = append(ours, timed(b, all, func(dst string) error {
			_, err := scratch.Copy(b.Context(), src, dst, large)
			return err
		}))
		theirs = append(theirs, timed(b, all, func(dst string) error { return exec.Command("cp", "-a", src+"/.", dst).Run() }))
	}
	us, them := median(ours), median(theirs)
	b.ReportMetric(us.Seconds()*1e3, "ms/copy")
	b.ReportMetric(them.Seconds()*1e3, "ms/cp-a")
	b.ReportMetric(us.Seconds()/them.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op") // the sum of both says nothing
}

func timed(b *testing.B, place string, once func(dst string) error) time.Duration {
	dst, err := os.MkdirTemp(place, "copy")
	check(b, err)
	start := time.Now()
	check(b, once(dst))
	return time.Since(start)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkPack takes the tree through a pipe to another directory, in memory, beside Copy. It reports the CPU-bound part of
// a workspace's way into a box.
func BenchmarkPack(b *testing.B) {
	src := workspace(b)
	o := scratch.Options{Owner: self(), MaxBytes: 1 << 30, MaxFiles: 1 << 20}
	target := func(b *testing.B) *os.File {
		f, err := os.Open(emptyIn(b, memory))
		check(b, err)
		return f
	}
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			f := target(b)
			_, err := scratch.Copy(b.Context(), src, f.Name(), o)
			check(b, err)
			check(b, f.Close())
		}
	})
	b.Run("pack", func(b *testing.B) {
		for b.Loop() {
			f := target(b)
			r, w, err := os.Pipe()
			check(b, err)
			sent := make(chan error, 1)
			go func() {
				_, err := scratch.Pack(b.Context(), src, w, o)
				_ = w.Close()
				sent <- err
			}()
			check(b, scratch.Unpack(bufio.NewReaderSize(r, 64<<10), f, roomy(o.Owner)))
			check(b, <-sent)
			check(b, r.Close())
			check(b, f.Close())
		}
	})
}
