// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/evoseal/containment/executor"
)

// homeTmp looks on the host for what the run wrote there, after the run.
func homeTmp(s *scene) error {
	res, err := s.reach(s.plainSpec("home-tmp"))
	if err != nil {
		return err
	}
	for _, name := range []string{"HOME", "TMPDIR"} {
		dir := answers(res.Stdout.Bytes(), name)
		if len(dir) != 1 || !filepath.IsAbs(dir[0]) {
			return s.breach("%s is %q", name, dir)
		}
		if state := answers(res.Stdout.Bytes(), "write-"+name); !slices.Equal(state, []string{"ok"}) {
			return s.breach("%s is not writable: %q", name, state)
		}
		if left := filepath.Join(dir[0], s.tag); exists(left) {
			_ = os.Remove(left)
			return s.breach("a file that the run made in %s is still there: %s", name, left)
		}
	}
	return nil
}

// processState spoils what a child inherits, and demands that nothing of it arrives.
func processState(s *scene) error {
	defer ignoreSignals()()
	defer syscall.Umask(syscall.Umask(0o077)) // what the payload must not inherit
	res, err := s.reach(s.plainSpec("process-state"))
	if err != nil {
		return err
	}
	want := map[string]string{
		"umask": "022", "SigIgn": strings.Repeat("0", 16), "SigBlk": strings.Repeat("0", 16), "core": "0 0",
		"terminal": "none",
	}
	for kind, text := range want {
		if err := s.mustSay(res, kind, text); err != nil {
			return err
		}
	}
	// A leader out of sight (0) or the host's own: the payload could be reached through the session, and reach it.
	if sid := answers(res.Stdout.Bytes(), "session"); len(sid) != 1 || sid[0] == "0" || sid[0] == sessionID() {
		return s.breach("the run is in session %q, the host in %s", sid, sessionID())
	}
	return nil
}

// enforcementReport demands one entry for each limit and for each promise, in the documented order.
func enforcementReport(s *scene) error {
	res, err := s.reach(s.plainSpec("reach"))
	if err != nil {
		return err
	}
	want := limitNames()
	for c := range s.ex.Capabilities().All() {
		want = append(want, c.String())
	}
	var got []string
	for _, e := range res.Enforced {
		got = append(got, e.Limit)
		if e.By == "" {
			return s.breach("%s does not say what enforces it", e.Limit)
		}
	}
	if !slices.Equal(got, want) {
		return s.breach("the report lists %v, not %v", got, want)
	}
	return nil
}

// usageMeasured burns a known amount: the figure may be absent, but not wrong.
func usageMeasured(s *scene) error {
	res, err := s.reach(s.plainSpec("burn", "150"))
	if err != nil {
		return err
	}
	u := res.Usage
	switch {
	case u.Wall < 100*time.Millisecond || u.Wall > 30*time.Second:
		return s.breach("wall time %v for a run that burned 150 ms", u.Wall)
	case u.CPUBy != executor.ByNone && u.User+u.System < 100*time.Millisecond:
		return s.breach("CPU time %v by %q for a run that burned 150 ms", u.User+u.System, u.CPUBy)
	case u.CPUBy == "" || u.PeakMemoryBy == "" || u.PeakProcessesBy == "":
		return s.breach("a figure does not say where it comes from: %s", fmt.Sprintf("%+v", u))
	}
	return nil
}

// ignoreSignals ignores two harmless signals in this process: what is ignored is inherited through execve.
func ignoreSignals() (restore func()) {
	signal.Ignore(syscall.SIGWINCH, syscall.SIGTTOU)
	return func() { signal.Reset(syscall.SIGWINCH, syscall.SIGTTOU) }
}

// limitNames are the fields of Limits in their order.
func limitNames() []string {
	var names []string
	for f := range reflect.TypeFor[executor.Limits]().Fields() {
		names = append(names, f.Name)
	}
	return names
}
