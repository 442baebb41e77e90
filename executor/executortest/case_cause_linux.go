// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"context"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/evoseal/containment/executor"
)

// late is how much later than its limit a result may come. The limit is the promise; this is the machine, which gets
// lateTries.
const late = 500 * time.Millisecond

// causeCases: the result must tell apart what wrapper scripts mix up.
func causeCases() []Case {
	return []Case{
		exitCase("exit-0", 0), exitCase("exit-42", 42), exitCase("exit-126", 126), exitCase("exit-127", 127),
		exitCase("exit-137", 137), exitCase("exit-139", 139),
		signalCase("signal-segv", "a wrapper reports 139 for it, an init that is the payload reports 0", syscall.SIGSEGV),
		signalCase("signal-abort", "an assertion that failed must not look like an exit code", syscall.SIGABRT),
		signalCase("signal-kill", "SIGKILL alone is no evidence of a lack of memory", syscall.SIGKILL),
		signalCase("signal-term", "a payload may end itself by any signal; nobody stopped it", syscall.SIGTERM),
		check("not-found", "a missing program is neither exit 127 nor an error of the set-up", 0, notFound),
		check("interpreter-missing", "a script whose interpreter is missing does not exist for the kernel",
			0, noInterpreter),
		check("not-executable", "a file without the execute bit, or in no known format, was never started",
			0, notExecutable),
		alone(check("wall", "a run without an end must end at its limit", 0, wallTimeout)),
		check("cancel-before", "a context that is done starts nothing", 0, cancelBefore),
		alone(check("cancel-during", "a cancelled run ends at once and says so", 0, cancelDuring)),
		check("cancel-after", "a context that ends after the run changes nothing", 0, cancelAfter),
	}
}

// exitCase makes a case of one exit code. The codes are those that shells, wrappers and init processes use themselves.
func exitCase(name string, code int) Case {
	why := "exit " + strconv.Itoa(code) + " is the payload's own word; shells and wrappers use the same numbers for other things"
	return check(name, why, 0, func(s *scene) error {
		res, err := s.reach(s.plainSpec("exit", strconv.Itoa(code)))
		if err != nil {
			return err
		}
		if res.Cause != executor.CauseExited || res.ExitCode != code || res.Signal != 0 || res.OK() != (code == 0) {
			return s.breach("exit %d became %s", code, describe(res))
		}
		return nil
	})
}

// signalCase makes a case of one signal that the payload sends to itself; nobody else sends any.
func signalCase(name, why string, sig syscall.Signal) Case {
	return check(name, why, 0, func(s *scene) error {
		res, err := s.reach(s.plainSpec("signal", strconv.Itoa(int(sig))))
		if err != nil {
			return err
		}
		if res.Cause != executor.CauseSignalled || res.Signal != sig || res.OK() {
			return s.breach("signal %v became %s", sig, describe(res))
		}
		return nil
	})
}

// mustEnd demands one cause, and never success.
func (s *scene) mustEnd(res *executor.Result, cause executor.Cause) error {
	if res.Cause != cause || res.OK() {
		return s.breach("the cause is not %v: %s", cause, describe(res))
	}
	return nil
}

// notFound names a missing program in the three ways in which a program can be named.
func notFound(s *scene) error {
	for _, program := range []string{"./no-such-program", "/no/such/program", "no-such-program-" + s.tag} {
		spec := s.plainSpec("reach")
		spec.Args[0] = program
		res, err := s.run(spec)
		if err != nil {
			return err
		}
		if err := s.mustEnd(res, executor.CauseNotFound); err != nil {
			return err
		}
	}
	return nil
}

// noInterpreter: execve answers ENOENT for a file that is there, which sends people looking for the wrong thing.
func noInterpreter(s *scene) error {
	return s.unstartable("script", "#!/no/such/interpreter\nexit 0\n", 0o755, executor.CauseNotFound)
}

// notExecutable needs two files, because the kernel has two answers: EACCES and ENOEXEC.
func notExecutable(s *scene) error {
	if err := s.unstartable("plain", "#!/bin/sh\nexit 0\n", 0o644, executor.CauseNotExecutable); err != nil {
		return err
	}
	return s.unstartable("garbage", "\x00\x01\x02 no format\n", 0o755, executor.CauseNotExecutable)
}

// unstartable runs a file of the workspace that the kernel does not start.
func (s *scene) unstartable(name, content string, mode os.FileMode, cause executor.Cause) error {
	if _, err := s.plant("ws/"+name, content, mode); err != nil {
		return s.fault(err)
	}
	spec := s.plainSpec("reach")
	spec.Args = []string{"./" + name}
	res, err := s.run(spec)
	if err != nil {
		return err
	}
	return s.mustEnd(res, cause)
}

// wallTimeout counts from the payload's start: set-up is not the payload's time.
func wallTimeout(s *scene) error {
	spec := s.plainSpec("sleep", millis(2*patience))
	spec.Limits.Wall = 400 * time.Millisecond
	res, t, err := s.reachWithin(spec)
	switch {
	case err != nil:
		return err
	case res.Usage.Wall < t.limit:
		return s.breach("a limit of %v ended the run after %v", t.limit, res.Usage.Wall)
	case res.Usage.Wall > t.limit+late:
		return s.tooLate("a limit of %v ended the run after %v", t.limit, res.Usage.Wall)
	}
	return s.mustEnd(res, executor.CauseWallTimeout)
}

// cancelBefore demands the context's own error, so that callers can tell it from a failure.
func cancelBefore(s *scene) error {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	s.ctx = ctx
	err, verdict := s.mustNotStart(s.plainSpec("reach"))
	if verdict == nil && !errors.Is(err, context.Canceled) {
		return s.breach("the error does not match context.Canceled: %v", err)
	}
	return verdict
}

// cancelDuring cancels a run that stands at a known point, so that what it said before must be in the result.
func cancelDuring(s *scene) error {
	h, err := s.hold("hold", job{}, nil)
	if err != nil {
		return err
	}
	res, took, err := h.cancel()
	if err != nil {
		return err
	}
	if took > time.Second {
		return s.tooLate("Run returned %v after it was cancelled", took)
	}
	if err := s.mustReach(res); err != nil {
		return s.breach("the output up to the end is lost: %s", describe(res))
	}
	return s.mustEnd(res, executor.CauseCancelled)
}

// cancelAfter: resources tied to the context must not reach back into a result that was returned.
func cancelAfter(s *scene) error {
	ctx, cancel := context.WithCancel(s.ctx)
	s.ctx = ctx
	res, err := s.reach(s.plainSpec("exit", "0"))
	cancel()
	if err != nil {
		return err
	}
	return s.mustOK(res)
}
