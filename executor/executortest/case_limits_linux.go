// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/evoseal/containment/executor"
)

// limitCases meet every limit but memory, disk and output, which have files of their own.
func limitCases() []Case {
	return []Case{
		attack("fork-bomb", "a fork bomb takes the host's process table, and a contained one is no success",
			executor.ProcessesBounded, forkBomb),
		attack("fork-bomb-default", "a limit that must be asked for is not there when it is needed",
			executor.ProcessesBounded, forkBombDefault),
		alone(check("busy-uid", "a limit per user counts strangers, and the run cannot start",
			executor.ProcessesBounded, busyUID)),
		attack("cpu-one", "a busy loop must end at its limit", executor.CPUBounded, cpuOne),
		attack("cpu-tree", "limits per process do not add up to a limit per run", executor.CPUBounded, cpuTree),
		attack("cpu-orphans", "the time of children that nobody waited for counts too",
			executor.CPUBounded, cpuOrphans),
		attack("cpu-short", "RLIMIT_CPU counts whole seconds; a limit that is rounded up is another limit",
			executor.CPUBounded, cpuShort),
		check("file-size", "one file must not fill the disk", 0, fileSize),
		check("open-files", "descriptors are the kernel's memory", 0, openFiles),
		check("mem-one", "one process must not take much more memory than the limit", 0, memOne),
	}
}

// forkBomb asks for a limit well below what it tries.
func forkBomb(s *scene) error { return s.bomb(48, 120) }

// forkBombDefault asks for none: zero means the default, never "unlimited".
func forkBombDefault(s *scene) error { return s.bomb(0, executor.DefaultLimits().Processes+40) }

// bomb counts the payload's processes from outside, while they live.
func (s *scene) bomb(limit, n int) error {
	h, err := s.hold("forks", forkJob("close", n), func(spec *executor.Spec) { spec.Limits.Processes = limit })
	if err != nil {
		return err
	}
	if limit == 0 {
		limit = executor.DefaultLimits().Processes
	}
	alive := len(s.payloadPids())
	res, err := h.release()
	if err != nil {
		return err
	}
	children, _ := strconv.Atoi(strings.Join(answers(res.Stdout.Bytes(), "children"), ""))
	if count := max(alive, children); count > limit {
		return s.breach("%d processes were alive under a limit of %d", count, limit)
	}
	return s.mustEnd(res, executor.CauseProcessLimit)
}

// busyUID learns under which uid runs happen and fills it with sleepers, as far as this caller can.
func busyUID(s *scene) error {
	field, release, err := s.status()
	if err != nil {
		return err
	}
	ids, err := field("Uid")
	if err != nil {
		return err
	}
	if err := release(); err != nil {
		return err
	}
	if err := s.sleepers(strings.Fields(ids)[0], 200); err != nil {
		return err
	}
	spec := s.plainSpec("exit", "0")
	spec.Limits.Processes = 64
	res, err := s.reach(spec)
	if err != nil {
		return s.breach("with 200 strangers under its uid the run does not start: %v", err)
	}
	return s.mustOK(res)
}

// sleepers starts one payload that forks n processes under a uid and stays until the scene ends.
func (s *scene) sleepers(uid string, n int) error {
	id, err := strconv.ParseUint(uid, 10, 32)
	if err != nil {
		return s.fault(err)
	}
	bin, release, err := holdTemplate()
	if err != nil {
		return s.fault(err)
	}
	s.later(release)
	cmd := exec.Command(bin, marker, "forks", s.tag)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return s.fault(err)
	}
	var out liveBuffer
	cmd.Stdout = &out
	if err := retryBusy(cmd.Start); err != nil {
		return s.fault(err)
	}
	s.later(func() { _ = stdin.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := stdin.Write(s.jobLine(forkJob("close", n))); err != nil {
		return s.fault(err)
	}
	if !eventually(patience, func() bool { return len(answers(out.Bytes(), "reached")) > 0 }) {
		return inconclusive(s.name, "the sleepers did not start: %q", out.Bytes())
	}
	return nil
}

const cpuLimit = time.Second // the kernel counts RLIMIT_CPU in whole seconds

// cpuOne burns more than the limit, and more than it may use before it is stopped. Where nothing stops it, it ends by
// itself; the control need not wait for that long.
func cpuOne(s *scene) error {
	limit, more := s.cpuLimit(cpuLimit), 2*time.Second
	if s.control {
		more = 0
	}
	return s.burns(s.plainSpec("burn", millis(limit+limit*4/5+more)), limit)
}

// treeLimit is for what no counter of one process can hold, so that whole seconds do not matter.
const treeLimit = 600 * time.Millisecond

// cpuTree burns four times half the limit, which is more together.
func cpuTree(s *scene) error { return s.burnTree("", treeLimit) }

// cpuOrphans does it with processes that are nobody's children, so that no wait ever sums them up.
func cpuOrphans(s *scene) error { return s.burnTree("detach", treeLimit) }

// cpuShort is cpuOrphans under a limit that no counter of whole seconds can hold.
func cpuShort(s *scene) error { return s.burnTree("detach", 300*time.Millisecond) }

// cpuLimit is shorter under the control, which need show no more than that nothing stops the payload.
func (s *scene) cpuLimit(limit time.Duration) time.Duration {
	if s.control {
		return limit / 10
	}
	return limit
}

// burnTree lets four processes use half the limit each.
func (s *scene) burnTree(kind string, limit time.Duration) error {
	limit = s.cpuLimit(limit)
	j := forkJob(kind, 4)
	j.Pid = int(limit.Milliseconds() / 2)
	return s.burns(s.spec("burn-tree", j), limit)
}

// burns demands the cause, and that the figure stays near the limit: a limit met late is none. Processor time is what
// other programs may leave little of, so there is more wall time than for others.
func (s *scene) burns(spec executor.Spec, limit time.Duration) error {
	spec.Limits.CPU, spec.Limits.CPUs, spec.Limits.Wall = limit, 2, 2*patience
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if u := res.Usage; u.CPUBy != executor.ByNone && u.CPUBy != "" && u.User+u.System > limit+1200*time.Millisecond {
		return s.tooLate("the run used %v of processor time under a limit of %v", u.User+u.System, limit)
	}
	return s.mustEnd(res, executor.CauseCPUTimeout)
}

// fileSize meets the limit with the signal's default effect, as a program does that knows nothing of it.
func fileSize(s *scene) error {
	spec := s.spec("fill-one", job{Paths: []string{"big"}, N: 4 << 20})
	spec.Limits.FileSize = 1 << 20
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if res.Signal != syscall.SIGXFSZ {
		return s.breach("the payload was not ended by SIGXFSZ: %s", describe(res))
	}
	return s.mustEnd(res, executor.CauseFileSize)
}

// openFiles counts the highest descriptor, so that the ones that the payload started with count too.
func openFiles(s *scene) error {
	spec := s.spec("open-files", job{N: 4096})
	spec.Limits.OpenFiles = 64
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	opened, err := strconv.Atoi(strings.Join(answers(res.Stdout.Bytes(), "opened"), ""))
	if err != nil {
		return inconclusive(s.name, "the payload did not count: %s", describe(res))
	}
	if opened > 64 {
		return s.breach("a process opened %d files under a limit of 64", opened)
	}
	return nil
}

// memOne asks for far more than the limit in one process. Whether the kernel refuses or kills is the executor's affair;
// that the memory is not there is the case.
func memOne(s *scene) error {
	spec := s.spec("touch", job{N: smallMemory + 512<<20})
	spec.Limits.Memory = smallMemory
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if got := answers(res.Stdout.Bytes(), "touched"); len(got) > 0 {
		return s.breach("one process used %s bytes under a limit of %d", got, smallMemory)
	}
	return nil
}
