// SPDX-License-Identifier: Apache-2.0

package crashtest

import (
	"flag"
	"testing"

	"github.com/evoseal/containment/rollback"
)

var (
	crashKills = flag.Int("crash.kills", 10, "processes killed in TestKill; make crash uses 1000")
	crashCuts  = flag.Int("crash.cuts", 3, "power cuts per file system in TestPowerCut; make crash uses 50")
)

// TestKill kills a process that restores or checkpoints, at random moments.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sc := newScene(t, dir+"/store", dir+"/tree", rollback.SyncDurable)
	for trial := range *crashKills {
		o := sc.order(trial)
		w := start(t, o)
		reported := w.moment(t)
		reported = append(reported, w.kill()...)
		if err := sc.check(o, reported, 0); err != nil {
			t.Fatalf("kill %d of %d, %d calls: %v", trial+1, *crashKills, len(reported), err)
		}
	}
}
