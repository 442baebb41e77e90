// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/scratch"
)

// Copies and removals, those that fail and those that are cut off included, leave no descriptor and no goroutine behind,
// and never hold many. Not parallel: it counts what the whole process holds.
func TestNothingIsLeft(t *testing.T) {
	src := plantIn(t, memory, entry{"a", deep(300, "d")}, entry{"f", file("x", 0o600)})
	bad := plantIn(t, memory, entry{"a", deep(300, "d")}, entry{"a/p", fifo})
	over := plantIn(t, memory, entry{"a", deep(400, "d")}, entry{"b", deep(300, "e")})
	mixed := plantIn(t, memory, entry{"a", deep(300, "d")}, entry{"a/p", fifo})
	files, routines := openDescriptors(t), runtime.NumGoroutine()
	var old unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	defer func() { check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) }()
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(files + 110), Max: old.Max}))

	for i := range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		from, o := src, large
		o.Overlay = []string{"", over}[i/3%2]
		switch i % 3 {
		case 1:
			from = bad
			if i%2 == 0 {
				from, o.Overlay = src, mixed
			}
		case 2:
			go cancel()
		}
		dst := fmt.Sprintf("%s-copy%d", src, i)
		check(t, os.Mkdir(dst, 0o700))
		_, err := scratch.Copy(ctx, from, dst, o)
		if (err == nil) != (i%3 == 0) && i%3 != 2 {
			t.Fatalf("round %d: %v", i, err)
		}
		cancel()
		check(t, scratch.Remove(t.Context(), dst))
	}
	if now := openDescriptors(t); now != files {
		t.Errorf("%d descriptors became %d", files, now)
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > routines; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines became %d", routines, runtime.NumGoroutine())
		}
	}
}
