// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise_test

import (
	"syscall"
	"testing"

	"github.com/evoseal/containment/internal/supervise"
)

// A package that starts a timer when it is initialised opens the runtime's poller before the server begins. A server that
// takes it for something that the host program left open loses most of its runs, or ends.
func TestTimerBeforeTheServer(t *testing.T) {
	if !supervise.PollerAtInit {
		t.Fatal("a timer does not open the runtime's poller any more, so this proves nothing")
	}
	for i := range 20 {
		events, _ := run(t, shell("exit 7"), nil)
		if len(events) != 3 || events[0].Kind != supervise.Started || events[1].Kind != supervise.Ended ||
			syscall.WaitStatus(events[1].Status).ExitStatus() != 7 || events[2].Kind != supervise.Empty {
			t.Fatalf("run %d: events %v, want started, ended with 7, empty", i, kinds(events))
		}
	}
}
