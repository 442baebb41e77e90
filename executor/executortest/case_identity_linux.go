// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"os"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
)

// identityCases read what the kernel says about a payload from outside: inside, a user namespace shows any uid it likes.
func identityCases() []Case {
	return []Case{
		check("identity", "a mapped uid 0 still is uid 0 for every check of the kernel outside",
			executor.UnprivilegedUser, identity),
		check("capabilities", "one capability in any set is a part of root", executor.UnprivilegedUser, capabilities),
		check("groups", "an inherited group opens what it owns: docker, disk, shadow",
			executor.UnprivilegedUser, groups),
		check("no-new-privs", "without it a set-uid program gives the run what was taken",
			executor.NoNewPrivileges, noNewPrivs),
		check("setuid-file", "a set-uid file must have no effect in the run", executor.NoNewPrivileges, setuidFile),
		check("seccomp-mode", "a filter that was not loaded refuses nothing", executor.SyscallsFiltered, seccompMode),
	}
}

// status returns a function that reads one field of the payload's status, from the host where the host can see the
// process. A run with a kernel of its own has no process on the host; then what its kernel says counts.
func (s *scene) status() (func(field string) (string, error), func() error, error) {
	h, err := s.hold("status", job{}, nil)
	if err != nil {
		return nil, nil, err
	}
	release := func() error { _, err := h.release(); return err }
	var pids []int
	if eventually(time.Second, func() bool { pids = s.payloadPids(); return len(pids) > 0 }) {
		return func(field string) (string, error) { return s.statusOf(pids[0], field) }, release, nil
	}
	if !s.ex.Capabilities().Has(executor.OwnKernel) {
		return nil, nil, inconclusive(s.name, "the host does not see the payload's process in /proc")
	}
	inside := strings.Join(answers(h.out.Bytes(), "status"), "")
	return func(field string) (string, error) {
		value, err := fieldOf(inside, field)
		if err != nil {
			return "", s.fault(err)
		}
		return value, nil
	}, release, nil
}

// statusOf reads one field, and is inconclusive if it cannot.
func (s *scene) statusOf(pid int, field string) (string, error) {
	value, err := statusField(pid, field)
	if err != nil {
		return "", s.fault(err)
	}
	return value, nil
}

// identity reads all four ids of each kind: the saved and the file system id are as good as the others.
func identity(s *scene) error {
	field, release, err := s.status()
	if err != nil {
		return err
	}
	for _, name := range []string{"Uid", "Gid"} {
		ids, err := field(name)
		if err != nil {
			return err
		}
		for _, id := range strings.Fields(ids) { // real, effective, saved, file system
			if id == "0" {
				return s.breach("for the host the payload's %s is %s", name, ids)
			}
		}
	}
	return release()
}

// capabilities leaves out the bounding set, which gives nothing to a process that has no_new_privs and no capability.
func capabilities(s *scene) error {
	field, release, err := s.status()
	if err != nil {
		return err
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		value, err := field(set)
		if err != nil {
			return err
		}
		if strings.Trim(value, "0") != "" {
			return s.breach("%s is %s", set, value)
		}
	}
	return release()
}

// groups are read for the same reason as ids: the kernel asks for both.
func groups(s *scene) error {
	field, release, err := s.status()
	if err != nil {
		return err
	}
	list, err := field("Groups")
	if err != nil {
		return err
	}
	// An ordinary caller cannot drop its groups; what it has is then not more than it was.
	caller, err := statusField(os.Getpid(), "Groups")
	if err != nil {
		return s.fault(err)
	}
	if list != "" && (os.Geteuid() == 0 || list != caller) {
		return s.breach("the payload is in the groups %s", list)
	}
	return release()
}

// noNewPrivs is a flag that cannot be taken back, so one look is enough.
func noNewPrivs(s *scene) error {
	field, release, err := s.status()
	if err != nil {
		return err
	}
	if value, err := field("NoNewPrivs"); err != nil || value != "1" {
		return s.breach("NoNewPrivs is %q (%v)", value, err)
	}
	return release()
}

// seccompMode shows that a filter is there; what it refuses is the affair of the call cases.
func seccompMode(s *scene) error {
	field, release, err := s.status()
	if err != nil {
		return err
	}
	if value, err := field("Seccomp"); err != nil || value != "2" {
		return s.breach("the seccomp mode is %q (%v), not 2", value, err)
	}
	return release()
}

// setuidFile plants a set-uid, set-gid copy of the payload and lets the run execute it. Whoever owns the copy inside,
// the process that comes of it must have the ids of the one that started it.
func setuidFile(s *scene) error {
	tool := s.ws + "/" + "setuid"
	if err := copyFile("/proc/self/exe", tool, 0o755); err != nil {
		return s.fault(err)
	}
	if err := os.Chmod(tool, 0o755|os.ModeSetuid|os.ModeSetgid); err != nil {
		return s.fault(err)
	}
	res, err := s.reach(s.spec("setuid", job{Paths: []string{"./setuid"}}))
	if err != nil {
		return err
	}
	before, after := answers(res.Stdout.Bytes(), "before"), answers(res.Stdout.Bytes(), "ids")
	if len(before) != 1 || len(after) != 1 {
		return inconclusive(s.name, "the set-uid file did not run: %s", describe(res))
	}
	if before[0] != after[0] {
		return s.breach("a set-uid file changed the ids from %s to %s", before[0], after[0])
	}
	if out := answers(res.Stdout.Bytes(), "nnp"); len(out) != 1 || out[0] != "1" {
		return s.breach("the process that came of a set-uid file has NoNewPrivs %q", out)
	}
	return nil
}
