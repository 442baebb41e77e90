// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fake is a version 2 hierarchy made of plain files, for what this machine's kernel cannot show.
type fake struct {
	t    *testing.T
	root string          // where the hierarchy is "mounted"
	proc string          // holds mountinfo and cgroup
	busy map[string]bool // directories that hold processes: they cannot hand controllers down
	lack map[string]bool // control files that this kernel lacks
	take func(file, value string) string
}

func newFake(t *testing.T, own string) *fake {
	t.Helper()
	dir := t.TempDir()
	f := &fake{
		t: t, root: filepath.Join(dir, "cgroup"), proc: filepath.Join(dir, "proc", "self"),
		busy: map[string]bool{}, lack: map[string]bool{},
	}
	for _, d := range []string{f.root, f.proc} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f.file(filepath.Join(f.proc, "mountinfo"), "30 23 0:26 / "+f.root+" rw - cgroup2 cgroup2 rw\n")
	f.file(filepath.Join(f.proc, "cgroup"), "0::"+own+"\n")
	f.file(filepath.Join(filepath.Dir(f.proc), "swaps"), "Filename Type Size Used Priority\n")
	return f
}

func (f *fake) file(path, text string) {
	f.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// group makes a group that exists beforehand, with the controllers that it has and hands down.
func (f *fake) group(path, available, handed string) {
	f.t.Helper()
	dir := filepath.Join(f.root, path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.t.Fatal(err)
	}
	f.file(filepath.Join(dir, "cgroup.controllers"), available+"\n")
	f.file(filepath.Join(dir, "cgroup.subtree_control"), handed+"\n")
	f.file(filepath.Join(dir, "cgroup.procs"), "")
}

func (f *fake) detector() *detector {
	return &detector{proc: f.proc, uid: os.Geteuid(), ops: ops{mkdir: f.mkdir, rmdir: f.rmdir, write: f.write}}
}

var fakeFiles = map[string]map[string]string{
	"": {"cgroup.procs": "", "cgroup.type": "domain\n", "cgroup.kill": "",
		"cgroup.controllers": "", "cgroup.subtree_control": "",
		"cpu.stat": "usage_usec 70\nuser_usec 40\nsystem_usec 30\nnr_periods 0\n"},
	"memory": {"memory.max": "max\n", "memory.swap.max": "max\n", "memory.peak": "4096\n",
		"memory.events": "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 0\n"},
	"pids": {"pids.max": "max\n", "pids.events": "max 5\n", "pids.peak": "9\n", "pids.current": "0\n"},
	"cpu":  {"cpu.max": "max 100000\n"},
}

func name(fd int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		panic(err)
	}
	return path
}

// mkdir gives a new group the files of the controllers that its parent hands down.
func (f *fake) mkdir(parent int, child string) error {
	dir := filepath.Join(name(parent), child)
	if err := unix.Mkdirat(parent, child, 0o755); err != nil {
		return err
	}
	for _, controller := range append(names(name(parent), "cgroup.subtree_control"), "") {
		for file, text := range fakeFiles[strings.TrimPrefix(controller, "+")] {
			if !f.lack[file] {
				f.file(filepath.Join(dir, file), text)
			}
		}
	}
	return nil
}

func (f *fake) rmdir(parent int, child string) error {
	return os.RemoveAll(filepath.Join(name(parent), child))
}

// write replaces the content, as the kernel does; it may answer with another value than was written.
func (f *fake) write(fd int, value string) error {
	path := name(fd)
	if filepath.Base(path) == "cgroup.subtree_control" {
		if f.busy[filepath.Dir(path)] {
			return unix.EBUSY
		}
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		value = strings.TrimSpace(string(old)) + " " + strings.TrimPrefix(value, "+")
	}
	if f.take != nil {
		value = f.take(filepath.Base(path), value)
	}
	return os.WriteFile(path, []byte(value+"\n"), 0o644)
}
