// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64 || riscv64 || loong64)

package executortest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
)

// Names end up in reports and in other people's code; reasons are read by whoever fails.
func TestCasesAreWellFormed(t *testing.T) {
	t.Parallel()
	all := Cases()
	if len(all) < 60 {
		t.Errorf("the suite has %d cases, and 60 are the least", len(all))
	}
	name, seen := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`), map[string]bool{supervisorKill: true}
	var attacked executor.Capability
	for _, c := range all {
		if !name.MatchString(c.Name) || seen[c.Name] {
			t.Errorf("%q is no name, or not the only one", c.Name)
		}
		if seen[c.Name] = true; len(c.Why) < 20 || strings.Contains(c.Why, "\n") || c.Check == nil {
			t.Errorf("%s: Why is %q", c.Name, c.Why)
		}
		if unknown := c.Needs &^ executor.AllCapabilities; unknown != 0 {
			t.Errorf("%s needs %v", c.Name, unknown)
		}
		attacked |= c.Needs
	}
	if missing := attacked.Missing(executor.AllCapabilities); missing != 0 {
		t.Errorf("nothing attacks %v", missing)
	}
}

// What runs again for a difference is what it touches: no case about something else, and none of those that stand between.
func TestCasesOfADifference(t *testing.T) {
	t.Parallel()
	if got, want := len(casesWith(everyNeed)), len(Cases()); got != want {
		t.Errorf("Run runs %d cases of %d", got, want)
	}
	for _, basics := range []bool{false, true} {
		names := map[string]bool{}
		for _, c := range casesWith(touched(executor.NetworkOff|executor.CPUBounded, basics)) {
			names[c.Name] = true
		}
		for name, want := range map[string]bool{
			"tcp": true, "path-unix": true, "cpu-one": true, "exit-0": basics, "art-link": basics,
			"call-vsock": false, "read-secret": false, "daemon": false,
		} {
			if names[name] != want {
				t.Errorf("basics %v: %s is among them: %v, want %v", basics, name, names[name], want)
			}
		}
	}
}

// Callers filter and reorder the list.
func TestCasesIsTheCallers(t *testing.T) {
	t.Parallel()
	all := Cases()
	first := all[0].Name
	all[0] = Case{}
	if got := Cases()[0].Name; got != first {
		t.Errorf("a caller changed the list: %q", got)
	}
}

// An attack that has no effect even without protection proves nothing, and must not pass.
func TestWeakAttackIsInconclusive(t *testing.T) {
	tried := false
	for name, c := range map[string]Case{
		"no effect": attack("no-effect", "", 0, func(*scene) error { return nil }),
		"cannot try": attack("cannot-try", "", 0, func(s *scene) error {
			_, err := s.reach(s.plainSpec("noop"))
			return err
		}),
		"under the executor": attack("only-control", "", 0, func(s *scene) error {
			if s.control {
				return s.breach("as it should")
			}
			tried = true
			_, err := s.reach(s.plainSpec("noop"))
			return err
		}),
	} {
		if err := c.Check(t.Context(), control{}); !errors.Is(err, ErrInconclusive) || errors.Is(err, ErrBreach) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !tried {
		t.Error("the attack was not tried after its control had succeeded")
	}
}

// Who proves an executor must be able to tell a breach from a check that went wrong.
func TestBreachIsTyped(t *testing.T) {
	t.Parallel()
	c := check("typed", "", 0, func(s *scene) error { return s.breach("seen %d", 7) })
	err := c.Check(t.Context(), control{})
	breach, ok := errors.AsType[*Breach](err)
	if !ok || breach.Case != "typed" || breach.Detail != "seen 7" {
		t.Errorf("%#v", err)
	}
	if !errors.Is(err, ErrBreach) || errors.Is(err, ErrInconclusive) {
		t.Errorf("%v matches the wrong sentinel", err)
	}
}

// A check returns whatever the executor does: hang or panic.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	defer close(stuck)
	start := time.Now()
	err := watchedFor(t.Context(), "stuck", 20*time.Millisecond, 20*time.Millisecond, func(context.Context) error {
		<-stuck
		return nil
	})
	if !errors.Is(err, ErrBreach) || time.Since(start) > 5*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	err = watched(t.Context(), "panics", func(context.Context) error { panic("on purpose") })
	if !errors.Is(err, ErrInconclusive) || !strings.Contains(err.Error(), "on purpose") {
		t.Errorf("a panic gives %v", err)
	}
}

// The proof of a start depends on the nonce alone, and does not give it away.
func TestProof(t *testing.T) {
	t.Parallel()
	nonce := randomHex(16)
	proof := proofOf(nonce)
	if len(proof) != 32 || proof != proofOf(nonce) || proof == proofOf(nonce+"x") || strings.Contains(proof, nonce[:8]) {
		t.Errorf("%q proves %q", proof, nonce)
	}
}

// Whatever a payload says, it stays one answer, and a line that was cut is none.
func TestAnswersSurviveTheirText(t *testing.T) {
	t.Parallel()
	out := []byte("noise\nkind \"a\\nb\"\nkinder \"no\"\nkind \"\\xff\"\nkind \"cut of")
	got := answers(out, "kind")
	if len(got) != 2 || got[0] != "a\nb" || got[1] != "\xff" {
		t.Errorf("%q", got)
	}
}

// The attacks' program is the running one without what the kernel does not load. A program that carries something of its
// own at its end keeps it.
func TestTrim(t *testing.T) {
	t.Parallel()
	size := func(extra string) (before, after int64) {
		path := filepath.Join(t.TempDir(), "program")
		if err := copyFile("/proc/self/exe", path, 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString(extra)
		fi, statErr := f.Stat()
		if err := errors.Join(err, statErr, f.Close(), trim(path)); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(path, marker, "reach", "tag", noJob).Output()
		if err != nil || !slices.Contains(answers(out, "reached"), proofOf("tag")) {
			t.Errorf("it does not run any more: %v %q", err, out)
		}
		now, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return fi.Size(), now.Size()
	}
	if before, after := size(""); after >= before {
		t.Errorf("%d bytes became %d", before, after)
	}
	if before, after := size("an archive"); after != before {
		t.Errorf("%d bytes became %d, though the last of them are the program's own", before, after)
	}
	if err := trim("/proc/self/status"); err == nil {
		t.Error("a text was taken for a program")
	}
}

// A control of its own shows that the attack works outside, and a case that reads the kernel has none.
func TestControl(t *testing.T) {
	t.Parallel()
	for _, c := range Cases() {
		switch c.Name {
		case "fds":
			if c.Control == nil || c.Control(t.Context()) != nil {
				t.Errorf("%s has no control, or the attack fails outside", c.Name)
			}
		case "no-new-privs":
			if c.Control != nil {
				t.Errorf("%s has a control", c.Name)
			}
		}
	}
	weak := attack("weak", "", 0, func(*scene) error { return nil })
	if err := weak.Control(t.Context()); !errors.Is(err, ErrInconclusive) {
		t.Errorf("an attack without effect has a control: %v", err)
	}
}

// A cgroup counts where the executor makes those of its runs, in every hierarchy, and nowhere else.
func TestBesideRuns(t *testing.T) {
	t.Parallel()
	groups := []string{"/", "/user", "/user/me"}
	for path, want := range map[string]bool{
		"/sys/fs/cgroup/containment-a": true, "/sys/fs/cgroup/memory/containment-a": true,
		"/sys/fs/cgroup/user/me/containment-a": true, "/sys/fs/cgroup/pids/user/me/containment-a": true,
		"/sys/fs/cgroup/pids/other/containment-a": false, "/sys/fs/cgroup/user/me/other/containment-a": false,
	} {
		if got := besideRuns(path, groups); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
