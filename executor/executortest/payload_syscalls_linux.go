// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// syscallPayloads is one payload; its job names the group of calls.
func syscallPayloads() map[string]func(*payload) {
	return map[string]func(*payload){"calls": callsPayload}
}

// call is one system call with arguments that cannot do anything.
type call struct {
	name string
	nr   uintptr
	args [6]uintptr
}

const (
	all1   = ^uintptr(0) // every flag, defined or not; descriptor -1
	nobody = 0x7ffffff0  // a process id that does not exist
	badPtr = 1           // an address that is never mapped
	dirty  = 1 << 32     // a bit that the kernel does not look at, and a careless comparison does

	cloneNewUser, cloneNewNS, cloneFS = 0x10000000, 0x00020000, 0x00000200
	afVsock, afALG, afPacket, afXDP   = 40, 38, 17, 44
	badType                           = syscall.SOCK_STREAM | 0x100 // an undefined flag: EINVAL before anything else
	tiocsti, tioclinux                = 0x5412, 0x541c
)

// callsOf lists the calls of a group, here those that open a part of the kernel to the run.
func callsOf(group string) []call {
	switch group {
	case "vsock":
		return []call{
			{"socket(AF_VSOCK)", syscall.SYS_SOCKET, [6]uintptr{afVsock, badType}},
			{"socket(AF_VSOCK|1<<32)", syscall.SYS_SOCKET, [6]uintptr{afVsock | dirty, badType}},
			{"socket(AF_ALG)", syscall.SYS_SOCKET, [6]uintptr{afALG, badType}},
			{"socket(AF_PACKET)", syscall.SYS_SOCKET, [6]uintptr{afPacket, badType}},
			{"socket(AF_XDP)", syscall.SYS_SOCKET, [6]uintptr{afXDP, badType}},
			{"socketpair(AF_VSOCK)", syscall.SYS_SOCKETPAIR, [6]uintptr{afVsock, badType}},
		}
	case "io-uring":
		return []call{
			{"io_uring_setup", sysIOURingSetup, [6]uintptr{0, badPtr}},
			{"io_uring_enter", sysIOURingEnter, [6]uintptr{all1, 0, 0, all1}},
			{"io_uring_register", sysIOURingRegister, [6]uintptr{all1, all1}},
		}
	case "keyctl":
		return []call{
			{"keyctl", syscall.SYS_KEYCTL, [6]uintptr{0xffff}},
			{"add_key", syscall.SYS_ADD_KEY, [6]uintptr{badPtr, badPtr}},
			{"request_key", syscall.SYS_REQUEST_KEY, [6]uintptr{badPtr, badPtr}},
		}
	case "bpf":
		return []call{
			{"bpf", sysBPF, [6]uintptr{0xffff, badPtr, 8}},
			{"perf_event_open", syscall.SYS_PERF_EVENT_OPEN, [6]uintptr{badPtr, 0, all1, all1, all1}},
			{"userfaultfd", sysUserfaultfd, [6]uintptr{all1}},
			{"fanotify_init", syscall.SYS_FANOTIFY_INIT, [6]uintptr{all1, all1}},
		}
	}
	return reachingCalls(group)
}

// reachingCalls are the groups that reach into namespaces and other processes.
func reachingCalls(group string) []call {
	switch group {
	case "nested-userns":
		return []call{ // each with a flag that contradicts it
			{"unshare", syscall.SYS_UNSHARE, [6]uintptr{cloneNewUser | 1}},
			{"unshare(NEWNS)", syscall.SYS_UNSHARE, [6]uintptr{cloneNewNS | 1}},
			{"clone", syscall.SYS_CLONE, [6]uintptr{cloneNewUser | cloneFS}},
			{"setns", sysSetns, [6]uintptr{all1, 0}},
		}
	case "ptrace":
		return []call{
			{"ptrace", syscall.SYS_PTRACE, [6]uintptr{syscall.PTRACE_PEEKDATA, nobody}},
			{"process_vm_readv", sysProcessVMReadv, [6]uintptr{nobody, 0, 0, 0, 0, all1}},
			{"process_vm_writev", sysProcessVMReadv + 1, [6]uintptr{nobody, 0, 0, 0, 0, all1}},
			{"kcmp", sysKcmp, [6]uintptr{nobody, nobody, 0}},
		}
	case "pidfd-getfd":
		return []call{{"pidfd_getfd", sysPidfdGetfd, [6]uintptr{all1, all1, 0}}}
	}
	return pathCalls(group)
}

// pathCalls are the groups that change what a path or a descriptor means, and clone3.
func pathCalls(group string) []call {
	switch group {
	case "tty-ioctl":
		return []call{
			{"ioctl(TIOCSTI)", syscall.SYS_IOCTL, [6]uintptr{all1, tiocsti}},
			{"ioctl(TIOCSTI|1<<32)", syscall.SYS_IOCTL, [6]uintptr{all1, tiocsti | dirty}},
			{"ioctl(TIOCLINUX)", syscall.SYS_IOCTL, [6]uintptr{all1, tioclinux}},
			{"ioctl(TIOCLINUX|1<<32)", syscall.SYS_IOCTL, [6]uintptr{all1, tioclinux | dirty}},
		}
	case "mount":
		return []call{
			{"mount", syscall.SYS_MOUNT, [6]uintptr{0, badPtr}},
			{"umount2", syscall.SYS_UMOUNT2, [6]uintptr{badPtr, all1}},
			{"chroot", syscall.SYS_CHROOT, [6]uintptr{badPtr}},
			{"open_tree", sysOpenTree, [6]uintptr{all1, badPtr, all1}},
			{"pivot_root", syscall.SYS_PIVOT_ROOT, [6]uintptr{badPtr, badPtr}},
		}
	case "handles":
		return []call{
			{"name_to_handle_at", sysNameToHandleAt, [6]uintptr{all1, badPtr, 0, 0, all1}},
			{"open_by_handle_at", sysNameToHandleAt + 1, [6]uintptr{all1, badPtr, 0}},
		}
	case "clone3":
		return []call{{"clone3", sysClone3, [6]uintptr{0, 0}}}
	}
	return nil
}

// callsPayload makes the calls of one group and reports the errno of each.
func callsPayload(p *payload) {
	p.reached()
	for _, c := range callsOf(p.job.Name) {
		a := c.args
		ret, _, errno := syscall.RawSyscall6(c.nr, a[0], a[1], a[2], a[3], a[4], a[5])
		if c.nr == syscall.SYS_CLONE && errno == 0 && ret == 0 {
			rawExit(0) // no kernel accepts these flags; if one did, this would be the child
		}
		p.say("call", c.name+" "+strconv.Itoa(int(errno)))
	}
	if p.job.Name == "nested-userns" {
		p.say("call", "clone(CLONE_NEWUSER) "+strconv.Itoa(int(realUserns(p.tag))))
	}
}

// realUserns starts a process in a new user namespace in earnest. Where the host itself forbids that it is refused under
// the control too; the other calls of the group are then the proof.
func realUserns(tag string) syscall.Errno {
	cmd := exec.Command("./"+payloadName, marker, "noop", tag, noJob)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: cloneNewUser}
	err := cmd.Run()
	var errno syscall.Errno
	if errors.As(err, &errno) {
		if errno == syscall.ENOSPC { // user.max_user_namespaces is 0: refused
			return syscall.EPERM
		}
		return errno
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return syscall.EPERM
	}
	return 0
}
