// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// inventory is what this process holds, as numbers, and what lies about on the host, as names.
type inventory struct {
	numbers map[string]int
	names   map[string]bool
}

// takeInventory looks at everything that runs could leave behind. tag is part of the label and of the arguments of the
// runs; places are directories in which an executor keeps things, groups those cgroups.
func takeInventory(tag string, places, groups []string) inventory {
	inv := inventory{names: map[string]bool{}, numbers: map[string]int{
		"goroutines":        runtime.NumGoroutine(),
		"open descriptors":  len(entryNames("/proc/self/fd")),
		"child processes":   descendants(os.Getpid()),
		"mounts":            countLines("/proc/self/mounts"),
		"processes of runs": len(tagged(tag)),
	}}
	for _, dir := range places {
		shared := dir == os.TempDir() || dir == "/dev/shm" || dir == "/"
		for _, name := range entryNames(dir) {
			if !shared || forRuns(name, tag) {
				inv.names[filepath.Join(dir, name)] = true
			}
		}
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir
		}
		if d.IsDir() && forRuns(d.Name(), tag) && besideRuns(p, groups) {
			inv.names[p] = true
		}
		return nil
	})
	return inv
}

// besideRuns reports whether a cgroup lies in one of those in which this executor makes its runs', with or without the
// name of a hierarchy in front. Deeper down in others are those of other programs that use this library. Without groups
// every place is one.
func besideRuns(path string, groups []string) bool {
	if groups == nil {
		return true
	}
	rel := strings.TrimPrefix(path, "/sys/fs/cgroup/")
	_, below, _ := strings.Cut(rel, "/")
	return slices.Contains(groups, filepath.Dir("/"+rel)) || slices.Contains(groups, filepath.Dir("/"+below))
}

// runGroups learns in which cgroups a run's own lie: all that are above the one of its payload, as the host sees it, and
// the root of each hierarchy. Where the host does not see the payload, as in a kernel of its own, there are none.
func runGroups(s *scene) (groups []string, err error) {
	h, err := s.hold("hold", job{}, nil)
	if err != nil {
		return nil, err
	}
	seen := false
	for _, pid := range s.payloadPids() {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
		for line := range strings.Lines(string(text)) { // number:controllers:path
			if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
				seen = true
				for dir := f[2]; dir != "/"; {
					dir = filepath.Dir(dir)
					groups = append(groups, dir)
				}
			}
		}
	}
	if _, err = h.release(); !seen {
		return nil, err
	}
	return append(groups, "/"), err
}

// forRuns recognises a name that an executor gave, among everything else that happens in a shared place: it holds the
// runs' label, or the name of this library.
func forRuns(name, tag string) bool {
	return strings.Contains(name, tag) || strings.Contains(name, "containment")
}

// exceededBy says what is there now and was not before. A name counts if it was new directly after the runs and still
// is there: other programs of the host make and remove things too, but not the same ones for so long.
func (b inventory) exceededBy(after, now inventory) string {
	var more []string
	for kind, n := range now.numbers {
		if n > b.numbers[kind] {
			more = append(more, fmt.Sprintf("%s: %d, were %d", kind, n, b.numbers[kind]))
		}
	}
	for name := range now.names {
		if after.names[name] && !b.names[name] {
			more = append(more, name)
		}
	}
	slices.Sort(more)
	return strings.Join(more, "; ")
}

// leakPlaces learns where the executor keeps the directories of its runs, if the host can see that: they lie around HOME.
func leakPlaces(s *scene) []string {
	places := []string{os.TempDir(), "/dev/shm"}
	res, err := s.run(s.plainSpec("home-tmp"))
	if err != nil {
		return places
	}
	for _, home := range answers(res.Stdout.Bytes(), "HOME") {
		dir := filepath.Dir(home)
		for dir != "/" && !exists(dir) {
			dir = filepath.Dir(dir)
		}
		places = append(places, dir)
	}
	return places
}

// descendants counts children, grandchildren and so on, zombies included.
func descendants(root int) int {
	children := map[int][]int{}
	for _, name := range procFiles("stat") {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // state ppid …
		pid, err1 := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if ppid, err2 := strconv.Atoi(fields[1]); err1 == nil && err2 == nil {
			children[ppid] = append(children[ppid], pid)
		}
	}
	n := 0
	for queue := children[root]; len(queue) > 0; queue = queue[1:] {
		n++
		queue = append(queue, children[queue[0]]...)
	}
	return n
}

// countLines counts entries of files that the kernel writes one per line.
func countLines(path string) int {
	text, _ := os.ReadFile(path)
	return bytes.Count(text, []byte("\n"))
}

// entryNames is empty for a directory that cannot be read: it may belong to somebody else.
func entryNames(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
