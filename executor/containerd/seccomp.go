// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"runtime"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// The filter of process 1 and of everything below it: what is not on the list is answered with EPERM. The payload gets
// a second one of its own over it (internal/seccomp), which decides the errnos that programs see.
//
// The list is what programs need that compute, use files, processes, threads, pipes and loopback sockets. It is grouped
// so that a reader can see what is not there: mounts and namespaces, modules, the clock, keys, other processes' memory,
// tracing, BPF, performance counters, user faults, asynchronous input and output (of which the host has one number for
// everybody, fs.aio-max-nr), quotas, swap, reboot, raw device ports.
var allowedCalls = [][]string{
	{ // files and directories
		"open", "openat", "openat2", "creat", "close", "close_range", "read", "pread64", "readv", "preadv", "preadv2",
		"write",
		"pwrite64", "writev", "pwritev", "pwritev2", "lseek", "_llseek", "truncate", "truncate64", "ftruncate", "ftruncate64",
		"fallocate", "fadvise64", "fadvise64_64", "arm_fadvise64_64", "readahead", "sendfile", "sendfile64",
		"copy_file_range",
		"splice", "tee", "vmsplice", "stat", "stat64", "fstat", "fstat64", "fstatat64", "newfstatat", "lstat", "lstat64",
		"statx", "statfs", "statfs64", "fstatfs", "fstatfs64", "access", "faccessat", "faccessat2", "readlink", "readlinkat",
		"getdents", "getdents64", "mkdir", "mkdirat", "mknod", "mknodat", "rmdir", "unlink", "unlinkat", "rename", "renameat",
		"renameat2", "link", "linkat", "symlink", "symlinkat", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "chown32",
		"fchown", "fchown32", "fchownat", "lchown", "lchown32", "umask", "utime", "utimes", "futimesat", "utimensat", "chdir",
		"fchdir", "getcwd", "dup", "dup2", "dup3", "fcntl", "fcntl64", "flock", "ioctl", "pipe", "pipe2", "fsync",
		"fdatasync",
		"sync", "syncfs", "sync_file_range", "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr",
		"setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "inotify_init", "inotify_init1",
		"inotify_add_watch", "inotify_rm_watch", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
		"cachestat", "statmount", "listmount",
	},
	{ // memory
		"brk", "mmap", "mmap2", "munmap", "mremap", "mprotect", "pkey_mprotect", "pkey_alloc", "pkey_free", "madvise",
		"mincore",
		"msync", "mlock", "mlock2", "mlockall", "munlock", "munlockall", "memfd_create", "memfd_secret", "membarrier",
		"remap_file_pages", "map_shadow_stack", "mseal",
	},
	{ // processes and threads
		"fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "waitpid", "kill", "tkill", "tgkill",
		"pidfd_open", "pidfd_send_signal", "getpid", "getppid", "gettid", "getpgid", "setpgid", "getpgrp", "getsid", "setsid",
		"set_tid_address", "set_robust_list", "get_robust_list", "rseq", "futex", "futex_waitv", "futex_wait", "futex_wake",
		"futex_requeue", "futex_time64", "arch_prctl", "set_thread_area", "get_thread_area", "prctl", "seccomp",
		"restart_syscall",
		"sched_yield", "sched_getaffinity", "sched_setaffinity", "sched_getparam", "sched_setparam", "sched_getscheduler",
		"sched_setscheduler", "sched_get_priority_max", "sched_get_priority_min", "sched_rr_get_interval", "sched_getattr",
		"sched_setattr", "getpriority", "setpriority", "ioprio_get", "ioprio_set", "getcpu", "getrlimit", "ugetrlimit",
		"setrlimit", "prlimit64", "getrusage", "times", "sysinfo", "uname", "getrandom", "process_madvise",
		"process_mrelease",
		"set_mempolicy", "get_mempolicy", "mbind",
	},
	{ // identity, which process 1 changes for the payload
		"getuid", "getuid32", "geteuid", "geteuid32", "getgid", "getgid32", "getegid", "getegid32", "getresuid",
		"getresuid32",
		"getresgid", "getresgid32", "getgroups", "getgroups32", "setuid", "setuid32", "setgid", "setgid32", "setreuid",
		"setreuid32", "setregid", "setregid32", "setresuid", "setresuid32", "setresgid", "setresgid32", "setgroups",
		"setgroups32", "setfsuid", "setfsuid32", "setfsgid", "setfsgid32", "capget", "capset",
	},
	{ // signals, time, waiting
		"rt_sigaction", "rt_sigprocmask", "rt_sigpending", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "rt_sigreturn",
		"rt_sigsuspend", "rt_sigtimedwait", "sigaltstack", "sigaction", "sigprocmask", "sigreturn", "sigsuspend",
		"sigpending",
		"signalfd", "signalfd4", "pause", "alarm", "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres",
		"gettimeofday", "time", "getitimer", "setitimer", "timer_create", "timer_settime", "timer_gettime",
		"timer_getoverrun",
		"timer_delete", "timerfd_create", "timerfd_settime", "timerfd_gettime", "poll", "ppoll", "select", "_newselect",
		"pselect6", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd",
		"eventfd2",
	},
	{ // sockets that exist; families are below
		"socketpair", "bind", "connect", "listen", "accept", "accept4", "getsockname", "getpeername", "getsockopt",
		"setsockopt",
		"send", "sendto", "sendmsg", "sendmmsg", "recv", "recvfrom", "recvmsg", "recvmmsg", "shutdown",
	},
	{ // what a namespace of the box's own makes private
		"shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv",
		"msgctl",
		"ipc", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
	},
}

// The flags of clone that make namespaces. CLONE_NEWTIME is the signal mask's for this call.
const newNamespaces = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000

// socketFamilies are UNIX, INET, INET6 and NETLINK, each of which the network namespace keeps inside. Every other one,
// AF_VSOCK above all, which no namespace covers, is refused. The comparison is wider than the kernel's, so that a
// family with high bits set is refused as well.
var socketFamilies = []uint64{1, 2, 10, 16}

// personalities are: Linux, the two halves of setarch -R and their sum, and the question.
var personalities = []uint64{0, 0x0040000, 0x0020000, 0x0060000, 0xffffffff}

// absentCalls are answered as by a kernel without them, so that programs take another way. The flags of clone3 lie
// behind a pointer, where no filter sees them; the C library then takes clone.
var absentCalls = []string{
	"clone3", "io_setup", "io_submit", "io_getevents", "io_pgetevents", "io_cancel", "io_destroy",
}

const enosys = 38

// seccompFilter returns the OCI filter for the native architecture alone. With any other one a program could enter the
// kernel by another table of numbers; that would also cost 10 ms for each box.
func seccompFilter() *specs.LinuxSeccomp {
	arch, known := map[string]specs.Arch{
		"amd64": specs.ArchX86_64, "arm64": specs.ArchAARCH64, "riscv64": specs.ArchRISCV64, "loong64": specs.ArchLOONGARCH64,
	}[runtime.GOARCH]
	if !known {
		return nil
	}
	f := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Architectures: []specs.Arch{arch}}
	add := func(s specs.LinuxSyscall) { f.Syscalls = append(f.Syscalls, s) }
	add(specs.LinuxSyscall{Names: slices.Concat(allowedCalls...), Action: specs.ActAllow})
	errno := uint(enosys)
	add(specs.LinuxSyscall{Names: absentCalls, Action: specs.ActErrno, ErrnoRet: &errno})
	add(specs.LinuxSyscall{Names: []string{"clone"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{
		{Index: 0, Value: newNamespaces, ValueTwo: 0, Op: specs.OpMaskedEqual},
	}})
	for _, family := range socketFamilies {
		add(oneValue("socket", family))
	}
	for _, value := range personalities {
		add(oneValue("personality", value))
	}
	return f
}

// oneValue allows a call with one value of its first argument. Each value has a rule of its own: a runtime takes
// several conditions on one argument for alternatives or for a conjunction, depending on its version.
func oneValue(call string, value uint64) specs.LinuxSyscall {
	return specs.LinuxSyscall{Names: []string{call}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{
		{Index: 0, Value: value, Op: specs.OpEqualTo},
	}}
}
