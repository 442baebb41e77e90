// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is what the host sees of one process.
type process struct {
	pid  int
	args []string
}

// procFiles lists a file of every process that /proc shows. A glob would list the directory of each of them, a hundred
// entries, for a name that is known.
func procFiles(name string) (files []string) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			files = append(files, filepath.Join("/proc", e.Name(), name))
		}
	}
	return files
}

// processes lists everything that the host's /proc shows: a pid namespace inside hides nothing from it.
func processes() []process {
	var all []process
	buf := make([]byte, 64<<10)
	for _, name := range procFiles("cmdline") {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			continue
		}
		n := readSmall(name, buf)
		if n <= 0 {
			continue // it ended meanwhile, or is the kernel's own
		}
		all = append(all, process{pid, strings.Split(string(bytes.TrimSuffix(buf[:n], []byte{0})), "\x00")})
	}
	return all
}

// readSmall reads the beginning of a file without the care that os takes of files that block: this is done hundreds of
// times for each case, and for every process of the host.
func readSmall(name string, buf []byte) int {
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	defer syscall.Close(fd)
	for done := 0; ; {
		n, err := syscall.Read(fd, buf[done:])
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 || done+n == len(buf) {
			return done + max(n, 0)
		}
		done += n
	}
}

// tagged lists the processes that carry a tag anywhere in their arguments: payloads, and launchers that pass them on.
func tagged(tag string) []process {
	var found []process
	for _, p := range processes() {
		if strings.Contains(strings.Join(p.args, "\x00"), tag) {
			found = append(found, p)
		}
	}
	return found
}

// survivors lists the processes of the scene's runs, launchers included.
func (s *scene) survivors() []int {
	var pids []int
	for _, p := range tagged(s.tag) {
		pids = append(pids, p.pid)
	}
	return pids
}

// payloadPids lists the scene's payloads alone: whatever wraps them may well have another identity.
func (s *scene) payloadPids() []int {
	var pids []int
	for _, p := range tagged(s.tag) {
		if len(p.args) > argTag && p.args[argMarker] == marker {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// kill kills a process of the scene, and only if it still is one: ids are reused.
func (s *scene) kill(pid int) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil && bytes.Contains(line, []byte(s.tag)) && pid != os.Getpid() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// noneLeft demands that Run has left no process. It looks at once: "soon" is not what C13 says. A process that was
// killed but is still being taken apart by the kernel has no command line any more.
func (s *scene) noneLeft() error {
	if pids := s.survivors(); len(pids) > 0 {
		return s.breach("%d processes of the run are alive after Run returned: %v", len(pids), pids)
	}
	return nil
}

// eventually polls until ok holds or the time is over.
func eventually(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// statusField returns one field of /proc/PID/status as the host sees it.
func statusField(pid int, field string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "", err
	}
	return fieldOf(string(text), field)
}

// fieldOf finds a field by its name: kernels add fields, and the order is theirs.
func fieldOf(status, field string) (string, error) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("/proc status has no field %s", field)
}
