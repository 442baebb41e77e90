// SPDX-License-Identifier: Apache-2.0

package box_test

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor/containerd/internal/box"
)

// held counts what this process has.
func held(t *testing.T) (descriptors, goroutines int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list), runtime.NumGoroutine()
}

// However a run ends, nothing of it stays in the host program. It runs alone.
func TestNothingIsLeft(t *testing.T) {
	packed := pack(t, box.Rules{}, map[string]string{"a": "A"})
	once := func() {
		for _, script := range []string{"echo ok", "sleep 60", "exec /no/such", "head -c 1m /dev/zero"} {
			ctx, cancel := context.WithCancel(t.Context())
			b := open(t)
			job := shell(t, script)
			job.Trees = []box.Tree{{Packed: packed, Target: box.Workspace}}
			job.Stdin, job.Limits.Output = strings.NewReader("input"), 1000
			if script == "sleep 60" {
				time.AfterFunc(20*time.Millisecond, cancel)
			}
			if _, err := b.Run(ctx, job); err != nil {
				t.Errorf("%s: %v", script, err)
			}
			cancel()
			_ = b.Exit()
			<-b.ended
			_ = b.Close()
		}
		for _, act := range lies {
			if _, err := play(t, fakeJob(t), act); err == nil {
				t.Error("a lie was believed")
			}
		}
	}
	once()
	fds, goroutines := held(t)
	once()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		nowFDs, now := held(t)
		if nowFDs <= fds && now <= goroutines {
			return
		}
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d descriptors, before %d; %d goroutines, before %d\n%s", nowFDs, fds, now, goroutines,
				buf[:runtime.Stack(buf, true)])
		}
	}
}
