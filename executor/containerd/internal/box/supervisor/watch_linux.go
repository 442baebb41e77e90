// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/internal/supervise"
)

const (
	// lookPeriod is the time between two looks at what sends no message: how full the volumes are, how many processes
	// there are.
	lookPeriod = 20 * time.Millisecond
	// busyPeriod is the same while processes come and go: who forks up to a limit may be gone again soon.
	busyPeriod = 5 * time.Millisecond
	// countPeriod is the time between two looks at every process, of which each costs about 20 µs.
	countPeriod = 100 * time.Millisecond
	// killTime bounds the time from the order to kill to the proof that nothing is left.
	killTime = 5 * time.Second
)

// watching is what is known of the payload.
type watching struct {
	pid     int
	start   time.Time
	wall    time.Duration
	ended   bool
	empty   bool // the kernel says that no child is left
	leader  supervise.Event
	killed  stream.Killed
	late    <-chan time.Time // killTime is over
	sampler *supervise.Sampler
	counted time.Time
	procs   int // processes at the last look, and the most of all looks
	most    int
	cpu     time.Duration
	tasks   int
	full    []int64
}

func (r *run) started(pid int, start time.Time) {
	r.pid, r.start = pid, start
	r.full = make([]int64, len(r.supervisor.open.Volumes))
}

// errNotDead: something did not die. It does when this process ends.
var errNotDead = errors.New("not everything is dead in time")

// watch returns when nothing of the payload is alive.
func (r *run) watch() error {
	wall := time.NewTimer(r.job.Wall - time.Since(r.start))
	defer wall.Stop()
	tick := time.NewTimer(busyPeriod)
	defer tick.Stop()
	for !r.empty {
		select {
		case <-r.children:
			r.reap()
		case <-wall.C:
			r.kill(stream.KilledWall)
		case <-r.over:
			r.kill(stream.KilledOutput)
		case <-r.spent:
			r.kill(stream.KilledCPU)
		case <-r.cancel:
			r.kill(stream.KilledCancel)
		case <-tick.C:
			tick.Reset(r.lookAround())
		case <-r.late:
			return errNotDead
		}
	}
	return nil
}

// reap collects whoever ended. When the leader has, so has the run: the rest is killed.
func (r *run) reap() {
	r.lastLook()
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		pid, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOHANG, &usage)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			r.empty = r.ended
			return
		case err != nil || pid == 0:
			return
		case pid == r.pid && !r.ended:
			r.wall, r.ended = time.Since(r.start), true
			r.leader = event(supervise.Ended, uint32(status), &usage)
			r.kill(stream.KilledNot)
		}
	}
}

// lastLook counts what there is when the leader has ended, while it is one of them: a process that was not waited for counts
// for the kernel too. One that was alone needs no look.
func (r *run) lastLook() {
	var info unix.Siginfo
	const flags = unix.WEXITED | unix.WNOHANG | unix.WNOWAIT | unix.WALL
	if r.ended || unix.Waitid(unix.P_PID, r.pid, &info, flags, nil) != nil || info.Signo == 0 {
		return
	}
	if r.most > 0 || processes() > 2 {
		r.count(false)
	}
}

// kill ends everything in the pid namespace but this process. The kernel does it under the lock that every fork needs. The
// first reason is the one that counts; one that comes after the payload's own end is none.
func (r *run) kill(why stream.Killed) {
	if why != stream.KilledNot {
		if r.reap(); !r.ended { // else it has ended a moment ago
			r.count(false)
		}
	}
	if r.killed == stream.KilledNot && !r.ended {
		r.killed = why
	}
	_ = unix.Kill(-1, unix.SIGKILL) // ESRCH: nobody is left; anything else shows when killTime is over
	if r.late == nil {
		r.late = time.After(killTime)
	}
}

func event(kind supervise.Kind, status uint32, u *unix.Rusage) supervise.Event {
	return supervise.Event{
		Kind: kind, Status: status, User: u.Utime.Nano(), System: u.Stime.Nano(), MaxRSS: u.Maxrss << 10,
	}
}

// lookAround samples, and says when it wants to look again.
func (r *run) lookAround() time.Duration {
	r.volumes()
	changed := r.count(time.Since(r.counted) >= countPeriod)
	if r.cpu > r.job.CPU {
		r.kill(stream.KilledCPU)
	}
	if changed {
		return busyPeriod
	}
	return lookPeriod
}

// count counts the processes, and looks at every one of them, its threads and its time, when there are more than ever
// before, when their number has changed since a while, or when it has to.
func (r *run) count(all bool) (changed bool) {
	n := processes() - 1 // not this one
	changed, r.procs = n != r.procs, n
	if n <= 0 || !all && n <= r.most && (!changed || time.Since(r.counted) < lookPeriod) {
		return changed
	}
	r.most, r.counted = max(r.most, n), time.Now()
	if r.sampler == nil {
		r.sampler = supervise.NewSampler()
	}
	if cpu, tasks, err := r.sampler.Look(); err == nil {
		r.cpu, r.tasks = cpu, tasks
	}
	return changed
}

// processes counts the processes that /proc lists, without a look at each.
func processes() int { return numbers("/proc") }

// threads counts those of this process.
func threads() int { return numbers("/proc/self/task") }

// numbers counts the entries of a directory that are numbers.
func numbers(dir string) (n int) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	var buf [8 << 10]byte
	for {
		size, err := unix.Getdents(fd, buf[:])
		if err != nil || size <= 0 {
			return n
		}
		for rest := buf[:size]; len(rest) > 0; {
			var name []byte
			if name, _, _, rest = fsys.ParseDirent(rest); name[0] >= '1' && name[0] <= '9' {
				n++
			}
		}
	}
}

// volumes notes when a file system is full, and returns how full each is.
func (r *run) volumes() (list []stream.Volume) {
	for i, path := range r.supervisor.open.Volumes {
		var st unix.Statfs_t
		if unix.Statfs(path, &st) != nil {
			continue
		}
		v := stream.Volume{
			Path: path, Size: int64(st.Blocks) * st.Bsize, Used: int64(st.Blocks-st.Bfree) * st.Bsize,
			Inodes: int64(st.Files), InodesUsed: int64(st.Files - st.Ffree),
		}
		switch {
		case st.Bfree == 0 && st.Blocks > 0:
			r.full[i] = v.Used
		case st.Ffree == 0 && st.Files > 0:
			r.full[i] = v.InodesUsed
		}
		v.Full = r.full[i]
		list = append(list, v)
	}
	return list
}

// result is everything that is known, raw.
func (r *run) result() *stream.Result {
	var all unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &all)
	return &stream.Result{
		Leader: r.leader, Tree: event(supervise.Empty, 0, &all), Killed: r.killed, Wall: r.wall,
		CPU: r.cpu, Tasks: r.tasks, Threads: threads(), Own: ownTime(),
		Totals: [2]int64{r.totals[0].Load(), r.totals[1].Load()}, Volumes: r.volumes(),
	}
}
