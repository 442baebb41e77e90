// SPDX-License-Identifier: Apache-2.0

package seccomp

// Values of the kernel's user API, spelled out because package unix lacks them on other systems.
const (
	afUnix, afInet, afInet6, afNetlink = 1, 2, 10, 16

	sockTypeMask                          = 0xf
	sockStream, sockSeqpacket, sockPacket = 1, 5, 10

	fSetLease              = 1024
	mapHugeTLB, mfdHugeTLB = 0x40000, 0x4
	netlinkRoute           = 0

	tiocsti, tioclinux, tiocsetd = 0x5412, 0x541c, 0x5423
	// FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY; the type byte of btrfs.
	fsSetFlags, fsSetXattr, fsEnableVerity, fsSetEncryption = 0x40086602, 0x401c5820, 0x40806685, 0x800c6613
	btrfsMagic                                              = 0x9400

	prioProcess, prioGroup     = 0, 1
	ioprioProcess, ioprioGroup = 1, 2

	// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. CLONE_NEWTIME shares its bit with the exit signal
	// in clone, which therefore cannot ask for it.
	newNamespaces = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
	// CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM: all that unshare can be asked for that is not a namespace.
	unshareHarmless = 0x00000100 | 0x00000200 | 0x00000400 | 0x00000800 | 0x00010000 | 0x00040000
)

// always is the part of the list that no option changes.
var always = []rule{
	{calls("io_uring_setup", "io_uring_enter", "io_uring_register"), nil, ENOSYS,
		"does input and output that no filter sees; node and tokio fall back"},
	{calls("clone3"), nil, ENOSYS, "its flags lie behind a pointer; libc falls back to clone"},
	{calls("clone"), when(low(0).hasAny(newNamespaces)), EPERM, "nested namespaces widen the kernel surface"},
	{calls("unshare"), when(low(0).hasAny(^uint32(unshareHarmless))), EPERM, "namespaces, and flags yet unknown"},
	{calls("unshare"), when(high(0).isNot(0)), EPERM, "flags yet unknown"},
	{calls("setns"), nil, EPERM, "enters other namespaces"},
	{calls("listns"), nil, ENOSYS, "lists namespaces of the host"},

	{calls("keyctl", "add_key", "request_key"), nil, EPERM, "keyrings belong to the uid and outlive a run"},
	{calls("socketpair"), when(low(0).isNot(afUnix)), EAFNOSUPPORT, "only AF_UNIX pairs serve as pipes"},
	{calls("socketpair"), when(low(0).is(afUnix), low(1).masked(sockTypeMask).isNot(sockStream, sockSeqpacket)), EPROTONOSUPPORT,
		"a pair of datagram sockets is not closed in itself: each end can send to any socket that has a name"},
	{calls("fcntl"), when(low(1).is(fSetLease)), EPERM, "a lease on a file makes everybody who opens it wait"},
	{calls("mmap"), when(low(3).hasAny(mapHugeTLB)), ENOMEM, "huge pages are the machine's and count as nobody's memory"},
	{calls("memfd_create"), when(low(1).hasAny(mfdHugeTLB)), ENOMEM, "huge pages are the machine's"},
	{calls("ioctl"), when(low(1).is(tiocsti, tioclinux)), EPERM, "types into a terminal"},
	{calls("ioctl"), when(low(1).is(tiocsetd)), EPERM, "line disciplines are kernel surface"},

	{calls("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "process_madvise",
		"process_mrelease"), nil, EPERM, "reaches into other processes, those of the sandbox included"},
	{calls("bpf", "perf_event_open", "userfaultfd", "fanotify_init"), nil, EPERM, "kernel attack surface"},
	{calls("modify_ldt", "uselib", "_sysctl", "nfsservctl", "lookup_dcookie"), nil, ENOSYS,
		"kernel attack surface that 64-bit programs have no use for; many kernels leave these calls out"},

	{calls("mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount", "fsopen",
		"fsconfig", "fsmount", "fspick", "mount_setattr"), nil, EPERM, "changes the view of the files"},
	{calls("open_by_handle_at", "name_to_handle_at"), nil, EPERM, "opens files outside the view"},
	{calls("swapon", "swapoff", "quotactl", "quotactl_fd", "acct", "reboot", "kexec_load", "kexec_file_load",
		"init_module", "finit_module", "delete_module", "syslog", "vhangup", "sethostname", "setdomainname", "iopl",
		"ioperm"), nil, EPERM, "administers the machine"},
	{calls("settimeofday", "clock_settime", "clock_adjtime", "adjtimex"), nil, EPERM, "sets the machine's clock"},
}

// kernelIPC is refused with the answer of a kernel that was built without these calls.
var kernelIPC = []rule{
	{calls("shmget", "shmat", "shmdt", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv",
		"msgctl", "mq_open", "mq_unlink"), nil, ENOSYS, "objects that outlive a run and that other runs can find"},
}

var noAffinity = []rule{
	{calls("sched_setaffinity"), nil, EPERM, "the limit on processors is set by affinity"},
}

// foreignProcesses lets the caller name only itself, which is 0 in all of these calls. Reading another process's
// limits stays allowed: a nil new limit is no change.
var foreignProcesses = []rule{
	{calls("prlimit64"), when(low(0).isNot(0), low(2).isNot(0)), EPERM, "sets limits of another process"},
	{calls("prlimit64"), when(low(0).isNot(0), high(2).isNot(0)), EPERM, "sets limits of another process"},
	{calls("sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity"), when(low(0).isNot(0)), EPERM,
		"takes processor time away from another process"},
	{calls("setpriority"), when(low(1).isNot(0)), EPERM, "lowers the priority of another process"},
	{calls("setpriority"), when(low(0).isNot(prioProcess, prioGroup)), EPERM, "lowers the priority of a whole uid"},
	{calls("ioprio_set"), when(low(1).isNot(0)), EPERM, "lowers the priority of another process"},
	{calls("ioprio_set"), when(low(0).isNot(ioprioProcess, ioprioGroup)), EPERM, "lowers the priority of a whole uid"},
	{calls("migrate_pages", "move_pages"), when(low(0).isNot(0)), EPERM, "moves memory of another process"},
}

// pathAttributes need no more than write permission, which everybody may have on a file of somebody else.
var pathAttributes = []rule{
	{calls("setxattr", "lsetxattr", "setxattrat", "removexattr", "lremovexattr", "removexattrat", "file_setattr"), nil, EPERM,
		"changes attributes of any file that the run may write, wherever it lies"},
}

// fileMetadata changes inodes through a descriptor, for which opening to read is enough.
var fileMetadata = []rule{
	{calls("fchmod", "fchown", "fsetxattr", "fremovexattr", "utimensat"), nil, EPERM,
		"changes mode, owner, times or attributes of a file that was opened for reading"},
	{calls("ioctl"), when(low(1).is(fsSetFlags, fsSetXattr, fsEnableVerity, fsSetEncryption)), EPERM,
		"changes attributes of a file that was opened for reading"},
	{calls("ioctl"), when(low(1).masked(0xff00).is(btrfsMagic)), EPERM, "changes a subvolume that was opened for reading"},
}

// pathMetadata changes inodes that were never opened, so no permission of a descriptor or of Landlock stands in the way.
// A nil path makes utimensat work on a descriptor, which stays allowed like the other calls that take one.
var pathMetadata = []rule{
	{calls("chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utime", "utimes", "futimesat"), nil, EPERM,
		"changes mode, owner or times of any file of the same uid"},
	{calls("utimensat"), when(low(1).isNot(0)), EPERM, "changes times of any file of the same uid"},
	{calls("utimensat"), when(high(1).isNot(0)), EPERM, "changes times of any file of the same uid"},
}

// sockets lists what the socket call refuses. AF_VSOCK reaches the hypervisor, AF_PACKET the wire, AF_ALG the kernel's
// crypto code; none is needed.
func sockets(s Sockets) []rule {
	switch s {
	case SocketsAll:
		return []rule{
			{calls("socket"), when(low(0).isNot(afUnix, afInet, afInet6, afNetlink)), EAFNOSUPPORT,
				"families that reach the hypervisor, the wire or rare kernel code"},
			{calls("socket"), when(low(0).is(afInet), low(1).masked(sockTypeMask).is(sockPacket)), EAFNOSUPPORT,
				"the kernel takes this old form for AF_PACKET"},
			{calls("socket"), when(low(0).is(afNetlink), low(2).isNot(netlinkRoute)), EPROTONOSUPPORT,
				"audit, firewall and other protocols of the kernel's administration"},
		}
	case SocketsUnix:
		return []rule{{calls("socket"), when(low(0).isNot(afUnix)), EAFNOSUPPORT, "no network"}}
	}
	return []rule{
		{calls("socket"), nil, EAFNOSUPPORT, "no network and no host sockets"},
		{calls("bind", "connect", "listen", "accept", "accept4"), nil, EPERM, "a pair is connected already"},
	}
}

// rules returns the list for o in the order in which it is printed.
func rules(o Options) []rule {
	list := append([]rule{}, always...)
	list = append(list, sockets(o.Sockets)...)
	if !o.KernelIPC {
		list = append(list, kernelIPC...)
	}
	if !o.Affinity {
		list = append(list, noAffinity...)
	}
	if !o.OwnProcesses {
		list = append(list, foreignProcesses...)
	}
	if !o.PathAttributes {
		list = append(list, pathAttributes...)
	}
	if !o.PathMetadata {
		list = append(list, pathMetadata...)
	}
	if !o.FileMetadata {
		list = append(list, fileMetadata...)
	}
	return list
}
