// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"os"

	"golang.org/x/sys/unix"
)

// atCWD is AT_FDCWD as a system call argument.
const atCWD = ^uintptr(99)

// lastCapability is above every capability that a kernel may know; one that it does not know answers EINVAL.
const lastCapability = 63

// identity gives up every id, group and capability that the payload must not have.
func (p *program) identity(job *Job) {
	if job.UID >= 0 {
		for c := range uintptr(lastCapability + 1) {
			p.call(StepCapabilities, unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0).allow = unix.EINVAL
		}
		uid, gid := uintptr(job.UID), uintptr(job.GID)
		p.call(StepUser, unix.SYS_SETGROUPS, 0, 0)
		p.call(StepUser, unix.SYS_SETRESGID, gid, gid, gid)
		p.call(StepUser, unix.SYS_SETRESUID, uid, uid, uid)
	}
	// Kernels before 4.3 have no ambient set to clear; EINVAL there is as good as an empty one.
	p.call(StepCapabilities, unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0).allow = unix.EINVAL
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := new([2]unix.CapUserData)
	p.call(StepCapabilities, unix.SYS_CAPSET, place(p, header), place(p, data))
}

// check compares what the child holds just before execve with what it should hold.
func (p *program) check(job *Job) {
	uid, gid := os.Getuid(), os.Getgid()
	if job.UID >= 0 {
		uid, gid = job.UID, job.GID
		p.exactly(StepCheck, 0, unix.SYS_GETGROUPS, 0, 0)
	}
	p.checkIDs(uid, gid)
	p.exactly(StepCheck, 1, unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
}

// checkIDs demands these ids, real and effective.
func (p *program) checkIDs(uid, gid int) {
	p.exactly(StepCheck, uintptr(uid), unix.SYS_GETUID)
	p.exactly(StepCheck, uintptr(uid), unix.SYS_GETEUID)
	p.exactly(StepCheck, uintptr(gid), unix.SYS_GETGID)
	p.exactly(StepCheck, uintptr(gid), unix.SYS_GETEGID)
}
