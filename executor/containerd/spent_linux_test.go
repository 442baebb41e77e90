// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A living executor's group keeps the parent, whoever else closes meanwhile; with the last one it goes.
func TestKeepParent(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	c := cgroupFiles{all: []string{filepath.Join(top, "v1"), filepath.Join(top, "v2")}}
	for _, dir := range c.all {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			own := keeper(strconv.Itoa(i))
			for range 200 {
				c.keep("/parent", own)
				for _, dir := range c.dirs("/parent") { // as a runtime does it: the parent, then the group
					box := filepath.Join(dir, "box"+own)
					if err := errors.Join(ignoreExist(os.Mkdir(dir, 0o755)), os.Mkdir(box, 0o755), os.Remove(box)); err != nil {
						t.Error(err)
						return
					}
				}
				c.forget("/parent", own)
			}
		})
	}
	wg.Wait()
	for _, dir := range c.dirs("/parent") {
		if exists(dir) {
			t.Errorf("left behind: %s", dir)
		}
	}
}

func TestCPUOf(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]time.Duration{
		"1 (a b) c) S 0 1 1 0 -1 4194560 1 2 3 4 150 50 7 8 20 0": 2*time.Second + 20*time.Millisecond, // rounded up twice
		"1 (x) S 0 1 1 0 -1 4194560 1 2 3 4 150":                  0,
		"1 (x) S 0 1 1 0 -1 4194560 1 2 3 4 a b":                  0,
		"":                                                        0,
	} {
		if got, ok := cpuOf([]byte(stat)); got != want || ok != (want > 0) {
			t.Errorf("%q: %v, %t", stat, got, ok)
		}
	}
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if ours, ok := cpuOf(text); !ok || ours <= 0 {
		t.Errorf("our own: %v, %t", ours, ok)
	}
	if inGroup(0, "") || inGroup(uint32(os.Getpid()), "/no/such") {
		t.Error("a process is in a group that it is not in")
	}
}

// All questions to a daemon that is gone wait once; one that was there in between is waited for anew, and so is one
// that nobody has asked for a while.
func TestMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &conn{}
		for i, step := range []struct {
			pause time.Duration
			there bool
			want  time.Duration
		}{
			{0, false, 0}, {2 * time.Second, false, 2 * time.Second}, {2 * time.Second, false, 4 * time.Second},
			{time.Second, true, 0}, {5 * time.Second, false, 0}, {time.Second, false, time.Second},
			{time.Minute, false, 0},
		} {
			time.Sleep(step.pause)
			if got := c.missed(step.there); got != step.want {
				t.Errorf("step %d: %v, want %v", i, got, step.want)
			}
		}
	})
}
