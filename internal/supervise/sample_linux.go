// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// samplePeriod is the time between two looks at the tree where no cgroup counts. One look costs about 20 µs for each
// process of the host.
const samplePeriod = 100 * time.Millisecond

// sampler adds up CPU time over a tree whose members come and go.
//
// Two sums are kept, since neither sees everything: seen has the last figure of every process, dead or alive; and the
// kernel's own books hold the processes that were waited for. A process that lives between two looks and whose parent
// ignores it (SIGCHLD set to be ignored) is in neither; that is the limit of sampling.
type sampler struct {
	seen  map[taskID]time.Duration
	next  time.Time
	cpu   time.Duration // the most that was seen
	peak  int           // tasks
	over  bool          // reported
	atTop bool          // reported
}

type taskID struct {
	pid   int
	start uint64
}

func (s *sampler) add(tasks []task, reaped time.Duration) {
	books, sum, threads := reaped, time.Duration(0), 0
	for _, one := range tasks {
		s.seen[taskID{one.pid, one.start}] = one.own
		books += one.own + one.waited
		if one.state != 'Z' {
			threads += one.threads
		}
	}
	for _, own := range s.seen {
		sum += own
	}
	s.cpu, s.peak = max(s.cpu, sum, books), max(s.peak, threads)
}

// look takes a sample if it is time for one, and reports the first time that a limit is met.
func (s *sampler) look(t *tree, job *Job) {
	if now := time.Now(); now.Before(s.next) || t.read() != nil {
		return
	}
	s.next = time.Now().Add(samplePeriod)
	var ru unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &ru)
	s.add(t.below(os.Getpid()), time.Duration(ru.Utime.Nano()+ru.Stime.Nano()))
	if job.CPULimit > 0 && s.cpu > job.CPULimit && !s.over {
		report(Event{Kind: CPUOver, CPU: int64(s.cpu)})
		s.over = true
	}
	if job.TaskLimit > 0 && s.peak >= job.TaskLimit && !s.atTop {
		report(Event{Kind: TasksAt, Tasks: int64(s.peak)})
		s.atTop = true
	}
}
