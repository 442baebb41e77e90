// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/reexec"
)

// crashOrder is what a child does, and where it kills itself.
type crashOrder struct {
	Store, Tree string
	ID          ID // to restore; zero: recover
	Options     Options
	Step        string // empty: any
	Nth         int    // of these steps; from 1
	NoExchange  bool   // on a file system that cannot exchange names
}

// every is the distance of the steps that are killed at, and of the operations that fail, in the tests that go
// through all of them. The named steps are tested one by one whatever it is.
var every = flag.Int("rollback.every", 3, "kill or fail at every `n`th step; 1: at each")

const crashStage = "rollback-crash"

func init() {
	reexec.Register(crashStage, func(params []byte) int {
		var o crashOrder
		if err := json.Unmarshal(params, &o); err != nil {
			return 3
		}
		s, err := Open(o.Store, &o.Options)
		if err != nil {
			return 4
		}
		if o.NoExchange {
			s.inject = func(op string) error {
				if op == "exchange" {
					return unix.EINVAL
				}
				return nil
			}
		}
		seen := 0
		s.hook = func(step string) {
			if o.Step != "" && step != o.Step {
				return
			}
			if seen++; seen == o.Nth {
				_ = unix.Kill(unix.Getpid(), unix.SIGKILL)
				select {}
			}
		}
		if o.ID.IsZero() {
			_, err = s.Recover(context.Background())
		} else {
			_, err = s.Restore(context.Background(), o.ID, o.Tree)
		}
		if err != nil {
			return 5
		}
		return 0
	})
}

// crash reports whether the child was killed; otherwise it came to its end.
func crash(t *testing.T, o crashOrder) bool {
	t.Helper()
	params, err := json.Marshal(o)
	check(t, err)
	p, err := reexec.Start(crashStage, params, nil)
	check(t, err)
	state, err := p.Wait()
	check(t, err)
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() && status.Signal() == syscall.SIGKILL {
		return true
	}
	if status.ExitStatus() != 0 {
		t.Fatalf("the child ended with %v", state)
	}
	return false
}

// crashBench is a spoiled tree with pictures of both sides.
type crashBench struct {
	*bench
	good, bad map[string]string
}

func newCrashBench(t *testing.T, o Options) *crashBench {
	t.Helper()
	b := &crashBench{bench: newBench(t, o)}
	b.spoil()
	return b
}

func (b *crashBench) spoil() {
	b.t.Helper()
	b.good = picture(b.t, b.tree)
	spoil(b.t, b.tree)
	b.bad = picture(b.t, b.tree)
	check(b.t, b.s.Close())
}

// verdict recovers and demands that the tree is one of the two, and everything works on.
func (b *crashBench) verdict(what string, o Options) (isNew bool) {
	t := b.t
	t.Helper()
	b.open(o)
	b.s.hook = nil
	rs, err := b.s.Recover(t.Context())
	if err != nil {
		t.Fatalf("%s: Recover: %v", what, err)
	}
	got := picture(t, b.tree)
	isNew = fmt.Sprint(got) == fmt.Sprint(b.good)
	if !isNew {
		same(t, what+": neither old nor new; against old", b.bad, got)
	}
	for _, r := range rs {
		if len(r.Quarantined)+len(r.Kept) > 0 {
			t.Errorf("%s: Recover reports %+v", what, r)
		}
	}
	if again, err := b.s.Recover(t.Context()); err != nil || len(again) > 0 {
		t.Errorf("%s: Recover again: %+v, %v", what, again, err)
	}
	check(t, b.s.Verify(t.Context(), ID{}))
	if _, err := b.s.Checkpoint(t.Context(), b.tree, Meta{}); err != nil {
		t.Errorf("%s: the next checkpoint: %v", what, err)
	}
	if _, err := b.s.Restore(t.Context(), b.old.ID, b.tree); err != nil {
		t.Errorf("%s: the next restore: %v", what, err)
	}
	same(t, what+": in the end", b.good, picture(t, b.tree))
	if list, err := os.ReadDir(filepath.Join(b.store, quarantineDir)); err != nil || len(list) > 0 {
		t.Errorf("%s: quarantine: %v, %v", what, list, err)
	}
	return isNew
}

// TestKillAtEveryStep: X1.
func TestKillAtEveryStep(t *testing.T) {
	t.Parallel()
	sawOld, sawNew := false, false
	for n := 1; ; n += *every {
		b := newCrashBench(t, scratchy)
		killed := crash(t, crashOrder{Store: b.store, Tree: b.tree, ID: b.old.ID, Options: scratchy, Nth: n})
		isNew := b.verdict(fmt.Sprintf("killed at step %d", n), scratchy)
		sawOld, sawNew = sawOld || !isNew, sawNew || isNew && killed
		if !isNew && sawNew {
			t.Errorf("step %d: old after an earlier step was new", n)
		}
		if !killed {
			if n < 35 {
				t.Errorf("only %d steps", n)
			}
			break
		}
	}
	if !sawOld || !sawNew {
		t.Errorf("saw old %t, new %t", sawOld, sawNew)
	}
}

// TestKillDuringRecover: X1, a second kill, wherever it strikes, changes nothing.
func TestKillDuringRecover(t *testing.T) {
	t.Parallel()
	for _, first := range []crashOrder{
		{Step: "restore/staged", Nth: 1}, {Step: "restore/committed", Nth: 1}, {Step: "restore/apply", Nth: 20},
		{Step: "restore/settled", Nth: 1},
	} {
		for n := 1; ; n += 2 * *every {
			b := newCrashBench(t, scratchy)
			first.Store, first.Tree, first.ID, first.Options = b.store, b.tree, b.old.ID, scratchy
			if !crash(t, first) {
				t.Fatalf("%s %d is no step", first.Step, first.Nth)
			}
			killed := crash(t, crashOrder{Store: b.store, Tree: b.tree, Options: scratchy, Nth: n})
			isNew := b.verdict(fmt.Sprintf("%s %d, then step %d of Recover", first.Step, first.Nth, n), scratchy)
			if isNew == (first.Step == "restore/staged") {
				t.Errorf("%s, then step %d: new %t", first.Step, n, isNew)
			}
			if !killed {
				break
			}
		}
	}
}

// TestKillAtNamedSteps: with all flushes, and where names cannot be exchanged.
func TestKillAtNamedSteps(t *testing.T) {
	t.Parallel()
	committed := false
	for _, step := range []string{
		"checkpoint/scanned", "checkpoint/packed", "checkpoint/sealed", "restore/scanned", "restore/safety",
		"restore/staging", "restore/staged", "restore/synced", "restore/committed", "restore/apply", "restore/apply-gap", "restore/applied",
		"restore/verified", "restore/settled", "restore/dropped", "restore/flushed", "restore/removed", "restore/finished",
	} {
		committed = committed || step == "restore/committed"
		b := &crashBench{bench: newBenchIn(t, place(t, SyncProcess), Options{})}
		b.spoil()
		order := crashOrder{Store: b.store, Tree: b.tree, ID: b.old.ID, Step: step, Nth: 1}
		order.NoExchange = step == "restore/apply-gap"
		if !crash(t, order) {
			t.Errorf("%s is no step", step)
		}
		if isNew := b.verdict(step, Options{}); isNew != committed {
			t.Errorf("%s: new %t", step, isNew)
		}
	}
}

// TestEditsAfterACrash: whoever writes between the crash and Recover finds it in quarantine.
func TestEditsAfterACrash(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"restore/committed", "restore/applied"} {
		b := newCrashBench(t, scratchy)
		if !crash(t, crashOrder{Store: b.store, Tree: b.tree, ID: b.old.ID, Options: scratchy, Step: step, Nth: 1}) {
			t.Fatalf("%s is no step", step)
		}
		b.write("a", "written after the crash")
		b.write("src/after", "added after the crash")
		b.open(scratchy)
		if _, err := b.s.Checkpoint(t.Context(), b.tree, Meta{}); !isPending(err) {
			t.Errorf("a checkpoint with a journal: %v", err)
		}
		rs, err := b.s.Recover(t.Context())
		check(t, err)
		same(t, step, b.good, picture(t, b.tree))
		if len(rs) != 1 || !rs[0].Recovered || rs[0].To != b.old.ID || rs[0].Safety.IsZero() || len(rs[0].Changes) < 20 {
			t.Fatalf("%s: %+v", step, rs)
		}
		b.quarantined(rs[0].Quarantined, map[string]string{
			"a": "written after the crash", "src/after": "added after the crash",
		})
	}
}

// quarantined demands that exactly these bytes are in quarantine.
func (b *bench) quarantined(list []Quarantined, want map[string]string) {
	b.t.Helper()
	got := map[string]string{}
	for _, q := range list {
		data, err := os.ReadFile(q.Where)
		if err != nil {
			b.t.Error(err)
		}
		if q.Why == "" {
			b.t.Errorf("%s: no reason", q.Path)
		}
		got[q.Path] = string(data)
	}
	same(b.t, "quarantine", want, got)
}
