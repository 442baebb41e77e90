// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/reexec"
)

// serving is one run as the server sees it: a guard that lives.
type serving struct {
	job     *Job
	control int // its end, or a byte on it, means "kill"; -1 after that
	// report and lock are held as long as this process may do something to the run. Their end tells the host program, and
	// the next one if that was killed, that the uid is free: a killer that is late would kill whoever has it then.
	report, lock int
	killing      bool
	done         bool // the guard said that nothing is left
	killer       bool // one is under way
	sampler      *sampler
}

// letGo closes what says that this process may still touch the run, if it may not.
func (r *serving) letGo() {
	if r.done && !r.killer {
		r.report, r.lock = closed(r.report), closed(r.lock)
	}
}

// closed closes the descriptor, if it is one, and returns what is none.
func closed(fd int) int {
	if fd >= 0 {
		unix.Close(fd)
	}
	return -1
}

// start runs the job under a guard. Whatever goes wrong is reported to the host program.
func (s *server) start(job *Job, files []int) {
	r := &serving{job: job, control: files[0], report: files[1], lock: files[2]}
	guard, err := s.spawn(job, files)
	if err != nil {
		step := StepMonitor
		if errors.Is(err, errUIDBusy) {
			step = StepUIDBusy
		}
		report(r.report, Event{Kind: Failed, Step: step, Errno: errnoOf(err)})
		r.done, r.control = true, closed(r.control)
		r.letGo()
		return
	}
	if job.Sample {
		r.sampler = &sampler{seen: map[taskID]time.Duration{}, wrapped: job.Wrapper != nil}
	}
	s.runs[guard] = r
}

var errUIDBusy = errors.New("supervise: a process of the reserved uid exists")

func (s *server) spawn(job *Job, files []int) (int, error) {
	if job.Reserved {
		if busy, err := UserBusy(job.UID); err != nil || busy {
			return 0, errors.Join(errUIDBusy, err)
		}
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, err
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	g := given{
		outcome: pipe[0], failure: pipe[1], notify: s.notifyW, into: -1, ruleset: -1,
		diagnostics: -1, args: -1, init: -1, image: -1,
	}
	g.report, g.lock, g.stdin, g.stdout, g.stderr = files[1], files[2], files[3], files[4], files[5]
	rest := files[6:]
	if job.Landlock {
		g.ruleset, rest = rest[0], rest[1:]
	}
	if job.Into {
		g.into, rest = rest[0], rest[1:]
	}
	if job.Wrapper != nil {
		g.diagnostics, g.args, g.init, rest = rest[0], rest[1], rest[2], rest[wrapFiles:]
	}
	g.cgroups = rest
	return s.build(job, g)
}

// build lays out what the guard does, and for a payload behind a wrapper what our init does in there, and starts it.
func (s *server) build(job *Job, g given) (int, error) {
	if job.Wrapper != nil {
		image, err := buildInit(job)
		if err != nil {
			return 0, err
		}
		f, err := reexec.Sealed(image)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		g.image = int(f.Fd())
	}
	p, err := buildGuard(job, g)
	if err != nil {
		return 0, err
	}
	return spawn(p)
}
