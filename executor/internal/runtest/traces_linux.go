// SPDX-License-Identifier: Apache-2.0

package runtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// StateDir returns a state directory that runs can pass: the temporary directory of a test is closed to them. It must be
// empty of runs at the end.
func StateDir(t testing.TB) string {
	t.Helper()
	older()
	dir, err := os.MkdirTemp("", "containment-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("state directory: %v", err)
		}
	})
	return dir
}

// TracesGone demands that nothing of runs below a state directory is left.
func TracesGone(t testing.TB, state string) {
	t.Helper()
	if found := traces(t, state); len(found) > 0 {
		t.Errorf("%d traces are left: %q", len(found), found[:min(len(found), 10)])
	}
}

// traces lists everything of runs below state that the host knows: processes that run in or from it, mounts, cgroups,
// scratch directories, leases.
func traces(t testing.TB, state string) (found []string) {
	t.Helper()
	procs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range procs {
		link := filepath.Join("/proc", e.Name(), "cwd")
		if dir, err := os.Readlink(link); err == nil && strings.HasPrefix(dir, state) {
			found = append(found, link+" → "+dir)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, state) {
			found = append(found, line)
		}
	}
	for _, pattern := range []string{"scratch/*", "leases/*"} {
		paths, _ := filepath.Glob(filepath.Join(state, pattern))
		for _, path := range paths {
			if filepath.Base(path) != "empty" { // the workspace of every trial run
				found = append(found, path)
			}
		}
	}
	return append(found, runGroups(state)...)
}

// older are the cgroups of runs that were there before the tests: somebody else's to remove. They are not looked for when
// the package is initialised, because every payload of the conformance suite is this program and would look, too.
var older = sync.OnceValue(listGroups)

// runGroups lists the cgroups of runs that stay. Tests of other packages may have runs at the same time; theirs go, or
// have a lease elsewhere, for the next executor there.
func runGroups(state string) (stay []string) {
	foreign := func(dir string) bool {
		leases, _ := filepath.Glob(filepath.Join("/*/*/leases", filepath.Base(dir)))
		inMemory, _ := filepath.Glob(filepath.Join("/dev/shm/*/leases", filepath.Base(dir)))
		ours := func(path string) bool { return strings.HasPrefix(path, state+"/") }
		leases = slices.DeleteFunc(append(leases, inMemory...), ours)
		return len(leases) > 0
	}
	stay = slices.DeleteFunc(listGroups(), func(dir string) bool { return slices.Contains(older(), dir) || foreign(dir) })
	for i := 0; i < 40 && len(stay) > 0; i++ {
		time.Sleep(50 * time.Millisecond)
		now := listGroups()
		stay = slices.DeleteFunc(stay, func(dir string) bool { return !slices.Contains(now, dir) || foreign(dir) })
	}
	return stay
}

var runGroup = regexp.MustCompile(`/containment-[a-z2-7]{26}$`)

func listGroups() (dirs []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && runGroup.MatchString(path) {
			dirs = append(dirs, path)
		}
		return nil
	})
	return dirs
}
