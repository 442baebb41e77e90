// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/evoseal/containment/executor"
)

// fileCases attack the host's files. What is planted is open to everybody, so that a mode alone never is the
// protection.
func fileCases() []Case {
	isolated, hidden := executor.WorkspaceIsolated, executor.HostFilesHidden
	return []Case{
		attack("write-host", "a run that can write beside its copy can change the program that judges it",
			isolated, writeHost),
		attack("write-original", "the original is one absolute path away from its copy", isolated, writeOriginal),
		attack("remove-host", "names can be attacked where contents cannot", isolated, removeHost),
		attack("metadata-host", "modes, times and attributes of the host's files are changed without opening them",
			isolated, metadataHost),
		attack("mount-readonly", "a declared mount is read-only unless a copy was asked for",
			isolated, mountReadOnly),
		attack("shm-private", "one name in shared memory joins two runs", isolated, shmPrivate),
		attack("sysctl", "a kernel setting holds for the whole host, and some run programs", isolated, sysctl),
		attack("read-secret", "undeclared files of the caller must be out of reach, whatever their mode",
			hidden, readSecret),
		attack("read-original", "what the copy leaves out still lies in the original", hidden, readOriginal),
		attack("read-magic", "/proc/PID/root and cwd lead around every path rule", hidden, readMagic),
		attack("read-link", "a link in the copy must not open what it names outside", hidden, readThroughLink),
	}
}

// writeHost plants files and a directory that everybody may write and demands that they stay. Under the executor, and
// only there, it also tries the host's well-known directories, with a name that nobody else has.
func writeHost(s *scene) error {
	if _, err := s.mkdir("open", 0o777); err != nil {
		return s.fault(err)
	}
	file, err := s.plant("open/file", "original", 0o666)
	if err != nil {
		return s.fault(err)
	}
	same, err := s.unchanged(filepath.Dir(file))
	if err != nil {
		return err
	}
	var strays []string
	if !s.control {
		home, _ := os.UserHomeDir()
		dirs := []string{"/", "/etc", "/usr/lib", "/dev", "/dev/shm", "/tmp", "/var/tmp", "/run", os.TempDir(), home}
		for _, dir := range dirs {
			strays = append(strays, filepath.Join(dir, "executortest-"+s.tag))
		}
		s.later(func() { removeAll(strays) })
	}
	paths := append([]string{file, filepath.Join(filepath.Dir(file), "new")}, strays...)
	if _, err := s.reach(s.spec("write", job{Paths: paths, Text: "changed"})); err != nil {
		return err
	}
	if err := same(); err != nil {
		return err
	}
	for _, stray := range strays {
		if exists(stray) {
			return s.breach("the payload made %s on the host", stray)
		}
	}
	return nil
}

// removeAll removes files that a run which was not contained has made; most never existed.
func removeAll(paths []string) {
	for _, path := range paths {
		_ = os.Remove(path)
	}
}

// writeOriginal knows where the original lies: the path is no secret, and often in an error message.
func writeOriginal(s *scene) error {
	file, err := s.plant("ws/open.txt", "original", 0o666)
	if err != nil {
		return s.fault(err)
	}
	if err := os.Chmod(s.ws, 0o777); err != nil {
		return s.fault(err)
	}
	same, err := s.unchanged(s.ws)
	if err != nil {
		return err
	}
	paths := []string{file, filepath.Join(s.ws, "new")}
	if _, err := s.reach(s.spec("write", job{Paths: paths, Text: "changed"})); err != nil {
		return err
	}
	return same()
}

// removeHost attacks a directory that everybody may write, without touching what is in the files.
func removeHost(s *scene) error {
	dir, err := s.mkdir("open", 0o777)
	if err != nil {
		return s.fault(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := s.plant("open/"+name, name, 0o666); err != nil {
			return s.fault(err)
		}
	}
	same, err := s.unchanged(dir)
	if err != nil {
		return err
	}
	if _, err := s.reach(s.spec("remove", job{Paths: []string{dir}})); err != nil {
		return err
	}
	return same()
}

// metadataHost attacks files of the caller that nobody else may write: only their owner can change these.
func metadataHost(s *scene) error {
	file, err := s.plant("meta/file", "x", 0o644)
	if err != nil {
		return s.fault(err)
	}
	same, err := s.unchanged(filepath.Dir(file))
	if err != nil {
		return err
	}
	if _, err := s.reach(s.spec("meta", job{Paths: []string{file, filepath.Dir(file)}})); err != nil {
		return err
	}
	return same()
}

// mountReadOnly declares a directory that everybody may write. Declaring makes it visible, not writable.
func mountReadOnly(s *scene) error {
	dir, err := s.mkdir("mount", 0o777)
	if err != nil {
		return s.fault(err)
	}
	file, err := s.plant("mount/sub/file", "original", 0o666)
	if err != nil {
		return s.fault(err)
	}
	same, err := s.unchanged(dir)
	if err != nil {
		return err
	}
	spec := s.spec("write", job{Paths: []string{file, filepath.Join(dir, "new")}, Text: "changed"})
	spec.Mounts = []executor.Mount{{Source: dir}}
	if _, err := s.reach(spec); err != nil {
		return err
	}
	return same()
}

// shmPrivate: shared memory is a directory that every process of a host may write, by tradition.
func shmPrivate(s *scene) error {
	path := "/dev/shm/executortest-" + s.tag
	s.later(func() { _ = os.Remove(path) })
	j := job{Paths: []string{path}, Text: randomHex(16)}
	h, err := s.hold("write", j, nil)
	if err != nil {
		return err
	}
	if exists(path) {
		return s.breach("the payload made a shared memory object on the host")
	}
	res, err := s.reach(s.spec("read", j2(j)))
	if err != nil {
		return err
	}
	if _, err := h.release(); err != nil {
		return err
	}
	if strings.Contains(res.Stdout.String(), j.Text) {
		return s.breach("two runs share a memory object")
	}
	return nil
}

// j2 is the job of the run that must not find the first one's text, and so must not be told it.
func j2(j job) job {
	j.Text = ""
	return j
}

// sysctl attacks files that only root may write, so an ordinary caller's control cannot: for it, the harmless setting of
// one of its own processes stands in. Values are written back as they are.
func sysctl(s *scene) error {
	v, err := s.victim()
	if err != nil {
		return err
	}
	own := "/proc/" + strconv.Itoa(v.pid) + "/coredump_filter"
	if _, err := s.reach(s.spec("write", job{Paths: []string{own}, Text: "0x7f"})); err != nil {
		return err
	}
	if now, err := os.ReadFile(own); err == nil && strings.TrimSpace(string(now)) == "0000007f" {
		return s.breach("the payload changed a setting of the host's kernel: %s", own)
	}
	if s.ex.Capabilities().Has(executor.OwnKernel) && !s.control {
		return nil // those are another kernel's settings
	}
	res, err := s.reach(s.spec("sysctl", job{Paths: []string{
		"/proc/sys/kernel/printk_delay", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory",
	}}))
	if err != nil {
		return err
	}
	if written := answers(res.Stdout.Bytes(), "written"); len(written) > 0 {
		return s.breach("the payload can write kernel settings: %q", written)
	}
	return nil
}
