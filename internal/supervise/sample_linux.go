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

// account adds up CPU time over a tree whose members come and go.
//
// Two sums are kept, since neither sees everything: seen adds the last figure seen of every process, dead or alive; and
// the kernel's own books hold the processes that were waited for. A process that lives between two looks and whose parent
// ignores it (SIGCHLD set to be ignored) is in neither; that is the limit of sampling.
type account struct {
	seen map[taskID]time.Duration
}

type taskID struct {
	pid   int
	start uint64
}

func (a *account) add(tasks []task, reaped time.Duration) (total time.Duration, threads int) {
	books := reaped
	for _, one := range tasks {
		a.seen[taskID{one.pid, one.start}] = one.own
		books += one.own + one.waited
		if one.state != 'Z' {
			threads += one.threads
		}
	}
	for _, own := range a.seen {
		total += own
	}
	return max(total, books), threads
}

// sample watches the tree's CPU time and size until the process ends.
func (m *monitor) sample() {
	a := account{seen: map[taskID]time.Duration{}}
	var t tree
	var overSent, tasksSent bool
	for ; ; time.Sleep(samplePeriod) {
		if t.read() != nil {
			continue
		}
		var ru unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &ru)
		cpu, threads := a.add(t.below(os.Getpid()), time.Duration(ru.Utime.Nano()+ru.Stime.Nano()))
		m.mu.Lock()
		m.cpu, m.peak = max(m.cpu, int64(cpu)), max(m.peak, int64(threads))
		m.mu.Unlock()
		if m.job.CPULimit > 0 && cpu > m.job.CPULimit && !overSent {
			report(Event{Kind: CPUOver, CPU: int64(cpu)})
			overSent = true
		}
		if m.job.TaskLimit > 0 && threads >= m.job.TaskLimit && !tasksSent {
			report(Event{Kind: TasksAt, Tasks: int64(threads)})
			tasksSent = true
		}
	}
}
