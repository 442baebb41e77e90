// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc/status"
)

// meaning is what words of a daemon mean, and what to do.
type meaning struct {
	words       []string // all of them, in lower case
	reason, fix string
}

// meanings are tried in their order. The daemon passes on what shim and runtime printed; there is no other evidence.
var meanings = []meaning{
	{
		[]string{"executable file not found"}, "a program is not on the daemon's PATH",
		"install runc and its shim (the packages runc and containerd) where the daemon finds them, or set Config.Runtime",
	},
	{
		[]string{"failed to start shim"}, "the shim of the runtime does not start",
		"check Config.Runtime; a daemon before 1.7 cannot start a current gVisor shim, and that shim needs CAP_SYS_RESOURCE",
	},
	{
		[]string{"open", "stdin fifo"}, "the daemon does not see Config.RuntimeDir",
		"bind the directory into the caller's container at the same path, or set Config.DaemonPath",
	},
	{
		[]string{"seccomp", "not supported"}, "the runtime was built without seccomp", "install one that has it",
	},
	{
		[]string{"unsupported spec version"}, "the runtime does not know this version of the OCI specification",
		"use runc; crun before 1.9 does not",
	},
	{
		[]string{"apparmor"}, "AppArmor refuses", "look at the kernel log",
	},
	{
		[]string{"user namespace", "no space left"}, "there are too many user namespaces", "raise user.max_user_namespaces",
	},
	{
		[]string{"no space left on device"}, "a disk of the daemon is full", "make room in its root and state directories",
	},
	{
		[]string{"mkdir", "read-only file system"}, "a mount point is missing in the root file system",
		"make the directories /proc /dev /run /tmp /box /.containment in it",
	},
	{
		[]string{"cgroup", "permission denied"}, "the daemon may not make cgroups",
		"run it as root, or delegate the memory, pids and cpu controllers to it (cgroup v2)",
	},
	{
		[]string{"cgroup", "no such file"}, "a cgroup controller is missing", "mount memory, pids, cpu and devices",
	},
	{
		[]string{"platform"}, "the image is for another platform", "use one for this machine",
	},
}

// explain puts a meaning on an error of the daemon. A nil error stays nil.
func explain(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, done := errors.AsType[*DaemonError](err); done {
		return err
	}
	err = native(err)
	e := &DaemonError{Op: op, Err: err}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errdefs.IsDeadlineExceeded(err):
		e.Reason, e.Fix = "there was no answer in time", "look at the daemon's log"
		return e
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EACCES):
		e.Reason, e.Fix = "the caller may not use the socket", "run as root, or as a member of the socket's group; either is "+
			"root on the daemon's host"
		return e
	case errdefs.IsUnavailable(err):
		e.Reason, e.Fix = "the daemon does not answer", "start it"
	}
	text := strings.ToLower(err.Error())
	for _, m := range meanings {
		if containsAll(text, m.words) {
			e.Reason, e.Fix = m.reason, m.fix
			break
		}
	}
	return e
}

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// native turns an error of the wire into one of errdefs. The client does that already for some of its services, and a second
// time it would lose what it was.
func native(err error) error {
	if _, wire := status.FromError(err); err == nil || !wire {
		return err
	}
	return errgrpc.ToNative(err)
}
