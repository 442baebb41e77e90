// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"slices"
	"time"
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
	seen map[taskID]time.Duration
	next time.Time
	cpu  time.Duration // the most that was seen
	peak int           // tasks
	// wrapped says that a wrapper and our init stand between guard and payload.
	wrapped bool
}

type taskID struct {
	pid   int
	start uint64
}

// add takes one look at the tree; reaped is the time of those that the guard waited for.
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

// look takes a sample and reports it, if it is time for one.
func (s *sampler) look(t *tree, guard, reports int) {
	if time.Now().Before(s.next) || t.read() != nil {
		return
	}
	s.next = time.Now().Add(samplePeriod)
	top := guard
	if s.wrapped { // not the wrapper, nor our init behind it
		for range 2 {
			if len(t.children[top]) == 0 {
				return
			}
			top = t.children[top][0]
		}
	}
	s.add(t.below(top), t.tasks[top].waited)
	report(reports, Event{Kind: Sampled, CPU: int64(s.cpu), Tasks: int64(s.peak)})
}

// Sampler looks at everything below the calling process, which is process 1 of its pid namespace, where no cgroup can be
// seen. What it cannot see is said at sampler.
type Sampler struct {
	s     sampler
	t     tree
	tasks int // the most that were seen
}

// NewSampler has seen nothing yet.
func NewSampler() *Sampler { return &Sampler{s: sampler{seen: map[taskID]time.Duration{}}} }

// Look takes a look at /proc and returns the CPU time of the tree, as far as it is known, and the largest number of tasks
// seen so far. Only processes that were there before and after the look are counted: so many existed at one time, those
// that nobody has waited for included, which the kernel counts against a limit as well.
func (s *Sampler) Look() (cpu time.Duration, tasks int, err error) {
	if err := s.t.read(); err != nil {
		return s.s.cpu, s.tasks, err
	}
	all := s.t.below(1)
	s.s.add(all, s.t.tasks[1].waited)
	pids, err := pids()
	if err != nil {
		return s.s.cpu, s.tasks, err
	}
	n := 0
	for _, one := range all {
		if _, still := slices.BinarySearch(pids, one.pid); still {
			n += one.threads
		}
	}
	s.tasks = max(s.tasks, n)
	return s.s.cpu, s.tasks, nil
}
