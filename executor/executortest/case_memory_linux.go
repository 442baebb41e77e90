// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"github.com/evoseal/containment/executor"
)

// memoryCases need a counter of the kernel: from outside a lack of memory looks like any other SIGKILL.
func memoryCases() []Case {
	bounded := executor.MemoryBounded
	return []Case{
		attack("oom-cause", "a lack of memory that shows as signal 9 sends people looking for a killer",
			bounded, oomCause),
		attack("oom-child", "a leader that exits 0 after its child was killed has not succeeded", bounded, oomChild),
		attack("mem-tree", "four processes below the limit are above it together", bounded, memTree),
		check("oom-repeat", "an event that comes late or is lost makes every tenth run lie", bounded, oomRepeat),
	}
}

const excess = 256 << 20 // above the limit: small enough for any host

// tooMuch is less under the control, which needs only show that nothing stops the payload.
func (s *scene) tooMuch() int64 {
	if s.control {
		return smallMemory + excess/8
	}
	return smallMemory + excess
}

// oomCause takes too much in one process.
func oomCause(s *scene) error {
	return s.outOfMemory(s.spec("touch", job{N: s.tooMuch()}))
}

// oomChild takes too much in a child, and then the leader exits 0.
func oomChild(s *scene) error {
	return s.outOfMemory(s.spec("oom-child", job{N: s.tooMuch()}))
}

// memTree shares the same amount among four processes, each below the limit.
func memTree(s *scene) error {
	return s.outOfMemory(s.spec("touch-tree", job{N: s.tooMuch() / 4}))
}

// outOfMemory demands the cause even where the kernel killed another process than the one that took the memory.
func (s *scene) outOfMemory(spec executor.Spec) error {
	spec.Limits.Memory = smallMemory
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	for _, kind := range []string{"touched", "held"} {
		if got := answers(res.Stdout.Bytes(), kind); len(got) > 0 && res.Cause != executor.CauseOutOfMemory {
			return s.breach("the run used %d bytes under a limit of %d: %s %q", s.tooMuch(), smallMemory, kind, got)
		}
	}
	return s.mustEnd(res, executor.CauseOutOfMemory)
}

// oomRepeat does it again and again: reading the counter races with the end of the group that holds it.
func oomRepeat(s *scene) error {
	for range 4 {
		if err := oomCause(s); err != nil {
			return err
		}
	}
	return nil
}
