// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evoseal/containment/allowlist"
	"golang.org/x/sys/unix"
)

// raceTries is the number of Apply calls for each attack and walk.
var raceTries = flag.Int("race-tries", 150, "tries of the link race for each attack; the full count is 10000")

// attack is a race of two names against Apply.
type attack struct {
	name, a, b, target string // b is a link to target, and changes places with a

	dir    string
	swaps  atomic.Int64
	broken atomic.Bool // an exchange failed: a name is missing
	pause  atomic.Bool // asks the thread to stand still
	stands atomic.Bool // it does
	done   atomic.Bool
}

const raceContent = "content of the file\n"

// TestLinkRace exchanges a file, or its directory, against a link to a protected one as fast as it can while edits are
// applied. Any result of Apply is right except one: that a protected byte changed.
func TestLinkRace(t *testing.T) {
	p := loadPolicy(t, treePolicyText)
	for _, names := range [][4]string{
		{"file", "src/d/safety", "src/d/link", "../../configs/safety"},
		{"directory", "src/d", "src/dlink", "../configs"},
	} {
		t.Run(names[0], func(t *testing.T) {
			for _, portable := range []bool{false, true} { // one after the other: each needs two processors
				o := &allowlist.TreeOptions{}
				if portable {
					allowlist.ForcePortable(o)
				}
				x := &attack{name: names[0], a: names[1], b: names[2], target: names[3]}
				x.dir = newFiles(t, map[string]string{"configs/safety": raceContent, "src/keep": ""})
				x.repair(t)
				tree := openTree(t, x.dir, o)
				var wg sync.WaitGroup
				wg.Go(x.exchange)
				t.Cleanup(func() { x.done.Store(true) })
				applied := x.apply(t, p, tree)
				x.done.Store(true)
				wg.Wait()
				t.Logf("%d tries, %d applied, %d exchanges", *raceTries, applied, x.swaps.Load())
				if x.swaps.Load() < int64(*raceTries) {
					t.Error("there was no race")
				}
				wantNoTemps(t, x.dir)
			}
		})
	}
}

// exchange is the thread of the attacker.
func (x *attack) exchange() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a, b := filepath.Join(x.dir, x.a), filepath.Join(x.dir, x.b)
	for !x.done.Load() {
		if x.pause.Load() {
			x.stands.Store(true)
			continue
		}
		if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil {
			x.swaps.Add(1)
		} else {
			x.broken.Store(true)
		}
	}
}

// still runs f while the thread stands still.
func (x *attack) still(f func()) {
	x.stands.Store(false)
	x.pause.Store(true)
	for !x.stands.Load() && !x.done.Load() {
		runtime.Gosched()
	}
	f()
	x.broken.Store(false)
	x.pause.Store(false)
}

// repair puts both names back as they were: an undo under attack may lose the attacker's link, which ends the race.
func (x *attack) repair(t *testing.T) {
	t.Helper()
	must(t, os.RemoveAll(filepath.Join(x.dir, x.a)))
	must(t, os.RemoveAll(filepath.Join(x.dir, x.b)))
	putFile(t, x.dir, "src/d/safety", raceContent, 0o644)
	must(t, os.Symlink(x.target, filepath.Join(x.dir, x.b)))
}

// check repairs what needs it.
func (x *attack) check(t *testing.T) {
	t.Helper()
	x.still(func() {
		if !x.whole() {
			x.repair(t)
		}
	})
}

// whole tells whether both names are there, one of them a link.
func (x *attack) whole() bool {
	links := 0
	for _, name := range []string{x.a, x.b} {
		info, err := os.Lstat(filepath.Join(x.dir, name))
		if err != nil {
			return false
		}
		if info.Mode().Type() == os.ModeSymlink {
			links++
		}
	}
	return links == 1
}

// apply edits the attacked file again and again, and looks at the protected directory after every try.
func (x *attack) apply(t *testing.T, p *allowlist.Policy, tree *allowlist.Tree) (applied int) {
	t.Helper()
	configs := filepath.Join(x.dir, "configs")
	for i := range *raceTries {
		if x.broken.Load() || i%16 == 0 {
			x.check(t)
		}
		plan := x.plan(t, p, tree, fmt.Sprintf("content %d\n", i))
		if _, err := plan.Apply(t.Context()); err == nil {
			applied++
		}
		data, err := os.ReadFile(filepath.Join(configs, "safety"))
		if err != nil || string(data) != raceContent {
			t.Fatalf("try %d: the protected file was overwritten: %q, %v", i, data, err)
		}
		if entries, err := os.ReadDir(configs); err != nil || len(entries) != 1 {
			t.Fatalf("try %d: the protected directory holds %v, %v", i, entries, err)
		}
	}
	return applied
}

// plan tries until the attacker lets the judgement pass, so that every try reaches Apply.
func (x *attack) plan(t *testing.T, p *allowlist.Policy, tree *allowlist.Tree, next string) *allowlist.Plan {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for n := 1; ; n++ {
		data, err := tree.ReadFile("src/d/safety")
		var plan *allowlist.Plan
		if err == nil {
			plan, err = p.Plan(tree, []allowlist.Edit{modify("src/d/safety", string(data), next)})
		}
		if err == nil {
			return plan
		}
		if time.Now().After(deadline) {
			t.Fatalf("no plan: %v", err)
		}
		if n%100 == 0 || errors.Is(err, fs.ErrNotExist) || errors.Is(err, allowlist.ErrHardLink) {
			x.check(t)
		}
	}
}

func wantNoTemps(t *testing.T, dir string) {
	t.Helper()
	for name, what := range readTree(t, dir) {
		if strings.HasPrefix(filepath.Base(name), ".al-") {
			t.Errorf("left over: %s: %s", name, what)
		}
	}
}
