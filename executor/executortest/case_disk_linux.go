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

// diskCases fill each kind of place that a run may write to. The verdict is the number of bytes that were taken.
func diskCases() []Case {
	bounded := executor.DiskBounded
	return []Case{
		attack("tmp-full", "a run that fills the host's disk stops the host, and on a tmpfs it fills memory",
			bounded, diskFull("$TMPDIR", "$HOME", "/tmp", "/var/tmp")),
		attack("workspace-full", "the copy of the workspace is on somebody's disk too", bounded, diskFull(".")),
		attack("shm-full", "an unsized shared memory file system is half the machine's memory",
			bounded, diskFull("/dev/shm", "$TMPDIR")),
		attack("disk-mounts", "a file system that nobody thought of is as large as it is",
			bounded, diskFull(everyMount, "$TMPDIR")),
	}
}

// everyMount stands for the mount points that the run sees.
const everyMount = "@mounts"

// diskFull writes twice the limit, far below the memory limit, so that only the disk can be what is full. The sum over
// all directories counts.
func diskFull(dirs ...string) probe {
	return func(s *scene) error {
		paths, limit := dirs, int64(24<<20)
		if s.control { // it owns the directories that the scene gives it, and no others
			paths, limit = []string{".", "$TMPDIR"}, 4<<20
		}
		limit += imageSize(s)
		spec := s.spec("fill-dirs", job{Paths: paths, N: 2 * limit})
		spec.Limits.Disk, spec.Limits.Memory = limit, 2*limit+(1<<30)
		defer s.sweepStray("/tmp", "/var/tmp", "/dev/shm")
		res, err := s.reach(spec)
		if err != nil {
			return err
		}
		total, err := strconv.ParseInt(strings.Join(answers(res.Stdout.Bytes(), "total"), ""), 10, 64)
		if err != nil {
			return inconclusive(s.name, "the payload did not count: %s", describe(res))
		}
		if total > spec.Limits.Disk*5/4 {
			return s.breach("the run wrote %d bytes under a limit of %d", total, spec.Limits.Disk)
		}
		return s.mustEnd(res, executor.CauseDiskFull)
	}
}

// imageSize leaves room for the payload itself, which is in the copy of the workspace.
func imageSize(s *scene) int64 { return max(size(filepath.Join(s.ws, payloadName)), 0) }

// sweepStray removes what a run that was not contained left in the host's directories.
func (s *scene) sweepStray(dirs ...string) {
	for _, dir := range dirs {
		strays, _ := filepath.Glob(filepath.Join(dir, "executortest-"+s.tag+"-*"))
		for _, stray := range strays {
			_ = os.Remove(stray)
		}
	}
}
