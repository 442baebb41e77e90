// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
)

// How long forked children live if nobody stops them: longer than any check looks, short enough to leave nothing behind.
const childLife = 8 * time.Second

// treeCases leave processes behind in every way that there is. The host looks for them by their tag.
func treeCases() []Case {
	tree := executor.TreeKilled
	return []Case{
		attack("daemon", "a process that forks twice and opens a session leaves every process group", tree, daemon),
		attack("daemon-deaf", "a daemon that ignores SIGTERM and SIGHUP must die all the same", tree, daemonDeaf),
		attack("daemon-many", "killing a list once misses what is forked meanwhile", tree, daemonMany),
		attack("late-write", "after the time limit a child goes on and changes files", tree, lateWrite),
		attack("timeout-tree", "killing the leader leaves its children", tree, timeoutTree),
		attack("exec-daemon", "a program started anew shares nothing with the run but what the kernel keeps",
			tree, execDaemon),
		alone(check("zombies", "children that nobody waits for fill the process table", tree, zombies)),
		alone(check("starve", "busy loops and forks must not keep cancellation from working", tree, starve)),
		alone(check("cancel-tree", "cancellation ends the whole tree, not the leader", tree, cancelTree)),
	}
}

// fork is the job of a tree payload: how many children, and how they are.
func forkJob(kind string, n int) job { return job{Name: kind, N: int64(n)} }

// daemon is what a server does when it starts itself in the background.
func daemon(s *scene) error { return s.outlives(forkJob("detach close", 1), 0) }

// daemonDeaf blocks every signal that can be blocked.
func daemonDeaf(s *scene) error { return s.outlives(forkJob("detach deaf close", 2), 0) }

// daemonMany is enough of them to be forked while the list of processes is read.
func daemonMany(s *scene) error { return s.outlives(forkJob("detach deaf close", 40), 0) }

// timeoutTree stays in the leader's session: the ordinary case, at the time limit.
func timeoutTree(s *scene) error {
	return s.outlives(forkJob("deaf close wait", 20), 600*time.Millisecond)
}

// outlives starts children that are up before the leader goes on, and looks for them when Run has returned.
func (s *scene) outlives(j job, wall time.Duration) error {
	spec := s.spec("forks", j)
	spec.Limits.Processes = 512
	if wall > 0 {
		spec.Limits.Wall = wall
	}
	res, err := s.reachInTime(spec)
	if err != nil {
		return err
	}
	if err := s.noneLeft(); err != nil {
		return err
	}
	if wall > 0 {
		return s.mustEnd(res, executor.CauseWallTimeout)
	}
	return s.mustOK(res)
}

// execDaemon has another program image, so that nothing but the kernel's book-keeping ties it to the run.
func execDaemon(s *scene) error {
	res, err := s.reach(s.spec("exec-daemon", job{}))
	if err != nil {
		return err
	}
	if err := s.noneLeft(); err != nil {
		return err
	}
	return s.mustOK(res)
}

// lateWrite has a child that goes on writing, into a directory where anybody may write. If nothing changes after Run has
// returned, the child is dead or has nowhere to write; that it is dead is demanded as well.
func lateWrite(s *scene) error {
	dir, err := s.mkdir("late", 0o777)
	if err != nil {
		return s.fault(err)
	}
	file := filepath.Join(dir, "file")
	spec := s.spec("late-write", job{Paths: []string{file, "late"}})
	spec.Limits.Wall = 400 * time.Millisecond
	if _, err := s.reachInTime(spec); err != nil {
		return err
	}
	before := size(file)
	time.Sleep(60 * time.Millisecond)
	if after := size(file); after != before {
		return s.breach("a file went on growing after Run returned, from %d to %d bytes", before, after)
	}
	return s.noneLeft()
}

// size is -1 if there is no such file.
func size(path string) int64 {
	fi, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return fi.Size()
}

// zombies makes orphans that end at once. Whoever inherits them must wait for them, during the run and at its end.
func zombies(s *scene) error {
	before := defunct()
	h, err := s.hold("forks", forkJob("detach close short", 200), nil)
	if err != nil {
		return err
	}
	const some = 20 // that have just ended, or are somebody else's
	during := 0
	fewDuring := eventually(5*time.Second, func() bool { during = defunct(); return during <= before+some })
	if _, err := h.release(); err != nil {
		return err
	}
	if !fewDuring {
		return s.breach("%d defunct processes pile up during the run", during-before)
	}
	if !eventually(5*time.Second, func() bool { return defunct() <= before+some }) {
		return s.breach("%d defunct processes are left", defunct()-before)
	}
	return nil
}

// defunct counts the host's zombies.
func defunct() int {
	n := 0
	for _, name := range procFiles("stat") {
		text, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(text), ") Z ") {
			n++
		}
	}
	return n
}

// starve keeps every processor busy that the run may have.
func starve(s *scene) error {
	h, err := s.hold("forks", forkJob("deaf close burn", 12), func(spec *executor.Spec) {
		spec.Limits.Processes, spec.Limits.CPUs = 64, 2
	})
	if err != nil {
		return err
	}
	return s.cancelled(h, time.Second)
}

// cancelTree cancels while daemons hold the output.
func cancelTree(s *scene) error {
	h, err := s.hold("forks", forkJob("detach deaf", 10), nil)
	if err != nil {
		return err
	}
	return s.cancelled(h, time.Second)
}

// cancelled demands a quick end, an empty process table and the right cause, in this order.
func (s *scene) cancelled(h *held, limit time.Duration) error {
	res, took, err := h.cancel()
	if err != nil {
		return err
	}
	if took > limit {
		return s.tooLate("Run returned %v after it was cancelled", took)
	}
	if err := s.noneLeft(); err != nil {
		return err
	}
	return s.mustEnd(res, executor.CauseCancelled)
}

// waitGone polls for the end of every process of a tag.
func waitGone(ctx context.Context, tag string, limit time.Duration) []process {
	var left []process
	eventually(limit, func() bool { left = tagged(tag); return len(left) == 0 || ctx.Err() != nil })
	return left
}

// kinds splits the words of a forks job.
func kinds(j job) func(string) bool {
	words := strings.Fields(j.Name)
	return func(word string) bool { return slices.Contains(words, word) }
}

// millis is a duration as an argument of a payload.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
