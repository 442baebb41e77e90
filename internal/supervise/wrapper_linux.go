// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"golang.org/x/sys/unix"
)

// buildWrapped lays out what a guard does for a payload behind a wrapper, and how it starts the wrapper: with the run's
// ids, no environment, and no descriptors but those that the wrapper and our init need.
func buildWrapped(job *Job, g given) (*program, error) {
	p := newProgram(beforeWrapper)
	p.into = job.Into
	p.locate()
	p.layGuard(g)
	p.call(StepSession, unix.SYS_SETSID)
	p.call(StepSession, unix.SYS_UMASK, 0o022)
	// Standard input is /dev/null, as the server's.
	for _, fd := range []uintptr{1, 2} {
		p.call(StepStdio, unix.SYS_DUP3, fdDiagnostics, fd, 0)
	}
	p.identity(job)
	p.call(StepDeathSignal, unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
	if err := p.chdir("/"); err != nil {
		return nil, err
	}
	if err := p.reach(job.Reachable); err != nil {
		return nil, err
	}
	p.signals()
	p.call(StepDescriptors, unix.SYS_CLOSE_RANGE, 3, maxFD, unix.CLOSE_RANGE_CLOEXEC)
	pass := []int{fdReport, fdStdin, fdStdout, fdStderr, WrapperArgsFD, fdInit, fdImage}
	for i := range job.Cgroups {
		pass = append(pass, fdCgroups+i)
	}
	for _, fd := range pass {
		p.call(StepDescriptors, unix.SYS_FCNTL, uintptr(fd), unix.F_SETFD, 0)
	}
	p.call(StepNoNewPrivs, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	p.check(job)
	return p, p.exec([]string{job.Wrapper.Program}, job.Wrapper.Args, nil)
}

// buildInit lays out what our init does behind the wrapper, as a guard with the payload as its child, in an image that
// another process maps.
func buildInit(job *Job) ([]byte, error) {
	p := newProgram(asInit)
	p.image = newImage()
	p.locate()
	p.layInit()
	p.begin(job)
	// Only what is left of them: the wrapper's namespace has no others.
	p.identity(&Job{UID: -1, GID: -1})
	p.call(StepDeathSignal, unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
	if err := p.chdir(job.Dir); err != nil {
		return nil, err
	}
	p.signals()
	p.call(StepDescriptors, unix.SYS_CLOSE_RANGE, 3, maxFD, unix.CLOSE_RANGE_CLOEXEC)
	p.call(StepNoNewPrivs, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	p.filter(job.Filter)
	p.checkIDs(job.Wrapper.UID, job.Wrapper.GID)
	if err := p.exec(job.Programs, job.Args, job.Env); err != nil {
		return nil, err
	}
	return p.encode(), nil
}

// layInit: our init keeps what it reports with and what the payload gets, and closes everything else that the wrapper left
// open. Nobody in the namespace may look into it.
func (p *program) layInit() {
	payloads := p.ops
	p.ops = nil
	p.call(StepMonitor, unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	// Orphans come to process 1 of a pid namespace, and with it everything in there dies.
	p.exactly(StepMonitor, 1, unix.SYS_GETPID)
	p.call(StepMonitor, unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
	p.call(StepMonitor, unix.SYS_DUP3, 0, 1, 0)
	p.call(StepMonitor, unix.SYS_DUP3, 0, 2, 0)
	for _, gap := range [][2]uintptr{
		{fdReport + 1, fdStdin - 1}, {fdRuleset, fdCgroups - 1}, {fdCgroups + maxCgroups, maxFD},
	} {
		p.call(StepMonitor, unix.SYS_CLOSE_RANGE, gap[0], gap[1], 0)
	}
	p.guard, p.ops = p.ops, payloads
}
