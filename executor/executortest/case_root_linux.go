// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/evoseal/containment/executor"
)

// rootCases attack what containers and virtual machines promise beyond the rest.
func rootCases() []Case {
	fresh := executor.FreshPerRun
	return []Case{
		attack("minimal-root", "a root that is the host's shows what is installed and configured there",
			executor.MinimalRoot, minimalRoot),
		attack("fresh-files", "a file that survives a run is a message to the next", fresh, freshFiles),
		attack("fresh-ipc", "System V memory and abstract sockets belong to no file system and survive",
			fresh, freshIPC),
		attack("own-kernel", "a kernel that is shared is an attack surface that is shared",
			executor.OwnKernel, ownKernel),
	}
}

// minimalRoot looks for the host's own files by device and inode: a copy with the same name is another file. The planted
// one makes the control conclusive; the others are what a host always has.
func minimalRoot(s *scene) error {
	planted, err := s.plant("undeclared/file", "x", 0o644)
	if err != nil {
		return s.fault(err)
	}
	paths := []string{
		planted, "/etc/passwd", "/etc/hostname", "/etc/machine-id", "/bin/sh", "/usr/bin/env", "/usr/lib/os-release",
		"/usr/share", "/var/lib",
	}
	res, err := s.reach(s.spec("inodes", job{Paths: paths}))
	if err != nil {
		return err
	}
	for _, seen := range answers(res.Stdout.Bytes(), "inode") {
		id, path, _ := strings.Cut(seen, " ")
		if id == inodeOf(path) {
			return s.breach("the run sees the host's own %s", path)
		}
	}
	return nil
}

// inodeOf identifies a file as far as a mount of the same file system shows it: times too, since small file systems
// number their inodes alike.
func inodeOf(path string) string {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return "none"
	}
	return fmt.Sprintf("%d:%d:%d.%d", st.Dev, st.Ino, st.Mtim.Sec, st.Mtim.Nsec)
}

// freshFiles leaves a secret in every directory that a run may be able to write, and looks for it in the next run.
func freshFiles(s *scene) error {
	name, secret := "executortest-"+s.tag, randomHex(16)
	dirs := []string{"/tmp", "/var/tmp", "/dev/shm", "$HOME", "$TMPDIR", "/run", ".", "/"}
	if s.control { // only what the scene planted
		open, err := s.mkdir("shared", 0o777)
		if err != nil {
			return s.fault(err)
		}
		dirs = []string{open}
	}
	var paths []string
	for _, dir := range dirs {
		paths = append(paths, strings.TrimSuffix(dir, "/")+"/"+name)
	}
	defer func() {
		for _, path := range paths {
			if strings.HasPrefix(path, "/") {
				_ = os.Remove(path)
			}
		}
	}()
	if _, err := s.reach(s.spec("write", job{Paths: paths, Text: secret})); err != nil {
		return err
	}
	res, err := s.reach(s.spec("read", job{Paths: paths}))
	if err != nil {
		return err
	}
	if strings.Contains(res.Stdout.String(), secret) {
		return s.breach("a run reads what an earlier one has left")
	}
	return nil
}

// The System V calls and flags that the case uses.
const (
	ipcCreate, ipcRemove = 0o1000, 0
	shmSize              = 4096
)

// freshIPC leaves a System V memory segment. The host removes it, whoever made it.
func freshIPC(s *scene) error {
	key, err := strconv.ParseUint(s.tag[:7], 16, 32)
	if err != nil {
		return s.fault(err)
	}
	defer removeSegment(uintptr(key))
	j := job{N: int64(key), Text: randomHex(16)}
	first, err := s.reach(s.spec("shm-leave", j))
	if err != nil {
		return err
	}
	res, err := s.reach(s.spec("shm-find", job{N: j.N}))
	if err != nil {
		return err
	}
	if strings.Contains(res.Stdout.String(), j.Text) {
		return s.breach("a run reads memory that an earlier one has left")
	}
	if s.control {
		return inconclusive(s.name, "segments: %q, then %q", answers(first.Stdout.Bytes(), "shm"),
			answers(res.Stdout.Bytes(), "shm"))
	}
	return nil
}

// removeSegment removes what either side may have left; without it the control would litter the host.
func removeSegment(key uintptr) {
	if id, _, errno := syscall.Syscall(syscall.SYS_SHMGET, key, 0, 0); errno == 0 {
		_, _, _ = syscall.Syscall(syscall.SYS_SHMCTL, id, ipcRemove, 0)
	}
}

// ownKernel compares the boot id, which every kernel draws for itself.
func ownKernel(s *scene) error {
	const path = "/proc/sys/kernel/random/boot_id"
	ours, err := os.ReadFile(path)
	if err != nil {
		return s.fault(err)
	}
	res, err := s.reach(s.spec("read", job{Paths: []string{path}}))
	if err != nil {
		return err
	}
	theirs := answers(res.Stdout.Bytes(), "read")
	if len(theirs) != 1 || len(theirs[0]) < 30 {
		return inconclusive(s.name, "the run has no boot id: %q", theirs)
	}
	if slices.Equal(theirs, []string{string(ours)}) {
		return s.breach("the boot id inside is the host's")
	}
	return nil
}
