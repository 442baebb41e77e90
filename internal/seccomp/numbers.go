// SPDX-License-Identifier: Apache-2.0

package seccomp

import "slices"

// abi is what the program has to know of one architecture.
type abi struct {
	name  string
	audit uint32 // AUDIT_ARCH_…
	x32   bool   // numbers with bit 30 set are a second ABI under the same audit value
	// Numbers from gapFirst to gapLast name no call today. On amd64, 335 and 336 are used by the kernel itself for
	// user-space probes and must pass.
	gapFirst, gapLast uint32
	column            int
}

var (
	amd64 = abi{name: "amd64", audit: 0xc000003e, x32: true, gapFirst: 337, gapLast: 423, column: 0}
	arm64 = abi{name: "arm64", audit: 0xc00000b7, gapFirst: 295, gapLast: 423, column: 1}
)

// newest is the last number that was looked at when the list was last revised (rseq_slice_yield). From 424 on, numbers
// are the same on every architecture.
const newest = 471

// none marks a call that an architecture does not have.
const none = ^uint32(0)

// number returns the number of a call. known is false for a name that the table lacks, which is a mistake in the list;
// a call that the architecture does not have is known and none.
func (a abi) number(name string) (nr uint32, known bool) {
	i, found := slices.BinarySearchFunc(numbers, name, func(n numbered, name string) int {
		switch {
		case n.name < name:
			return -1
		case n.name > name:
			return 1
		}
		return 0
	})
	if !found {
		return none, false
	}
	return numbers[i].nr[a.column], true
}

type numbered struct {
	name string
	nr   [2]uint32 // amd64, arm64
}

// numbers is sorted by name.
var numbers = []numbered{
	{"_sysctl", [2]uint32{156, none}},
	{"accept", [2]uint32{43, 202}},
	{"accept4", [2]uint32{288, 242}},
	{"acct", [2]uint32{163, 89}},
	{"add_key", [2]uint32{248, 217}},
	{"adjtimex", [2]uint32{159, 171}},
	{"bind", [2]uint32{49, 200}},
	{"bpf", [2]uint32{321, 280}},
	{"chmod", [2]uint32{90, none}},
	{"chown", [2]uint32{92, none}},
	{"chroot", [2]uint32{161, 51}},
	{"clock_adjtime", [2]uint32{305, 266}},
	{"clock_settime", [2]uint32{227, 112}},
	{"clone", [2]uint32{56, 220}},
	{"clone3", [2]uint32{435, 435}},
	{"connect", [2]uint32{42, 203}},
	{"delete_module", [2]uint32{176, 106}},
	{"fanotify_init", [2]uint32{300, 262}},
	{"fchmod", [2]uint32{91, 52}},
	{"fchmodat", [2]uint32{268, 53}},
	{"fchmodat2", [2]uint32{452, 452}},
	{"fchown", [2]uint32{93, 55}},
	{"fchownat", [2]uint32{260, 54}},
	{"fcntl", [2]uint32{72, 25}},
	{"file_setattr", [2]uint32{469, 469}},
	{"finit_module", [2]uint32{313, 273}},
	{"fremovexattr", [2]uint32{199, 16}},
	{"fsconfig", [2]uint32{431, 431}},
	{"fsetxattr", [2]uint32{190, 7}},
	{"fsmount", [2]uint32{432, 432}},
	{"fsopen", [2]uint32{430, 430}},
	{"fspick", [2]uint32{433, 433}},
	{"futimesat", [2]uint32{261, none}},
	{"init_module", [2]uint32{175, 105}},
	{"io_uring_enter", [2]uint32{426, 426}},
	{"io_uring_register", [2]uint32{427, 427}},
	{"io_uring_setup", [2]uint32{425, 425}},
	{"ioctl", [2]uint32{16, 29}},
	{"ioperm", [2]uint32{173, none}},
	{"iopl", [2]uint32{172, none}},
	{"ioprio_set", [2]uint32{251, 30}},
	{"kcmp", [2]uint32{312, 272}},
	{"kexec_file_load", [2]uint32{320, 294}},
	{"kexec_load", [2]uint32{246, 104}},
	{"keyctl", [2]uint32{250, 219}},
	{"lchown", [2]uint32{94, none}},
	{"listen", [2]uint32{50, 201}},
	{"listns", [2]uint32{470, 470}},
	{"lookup_dcookie", [2]uint32{212, 18}},
	{"lremovexattr", [2]uint32{198, 15}},
	{"lsetxattr", [2]uint32{189, 6}},
	{"memfd_create", [2]uint32{319, 279}},
	{"migrate_pages", [2]uint32{256, 238}},
	{"mmap", [2]uint32{9, 222}},
	{"modify_ldt", [2]uint32{154, none}},
	{"mount", [2]uint32{165, 40}},
	{"mount_setattr", [2]uint32{442, 442}},
	{"move_mount", [2]uint32{429, 429}},
	{"move_pages", [2]uint32{279, 239}},
	{"mq_open", [2]uint32{240, 180}},
	{"mq_unlink", [2]uint32{241, 181}},
	{"msgctl", [2]uint32{71, 187}},
	{"msgget", [2]uint32{68, 186}},
	{"msgrcv", [2]uint32{70, 188}},
	{"msgsnd", [2]uint32{69, 189}},
	{"name_to_handle_at", [2]uint32{303, 264}},
	{"nfsservctl", [2]uint32{180, 42}},
	{"open_by_handle_at", [2]uint32{304, 265}},
	{"open_tree", [2]uint32{428, 428}},
	{"open_tree_attr", [2]uint32{467, 467}},
	{"perf_event_open", [2]uint32{298, 241}},
	{"pidfd_getfd", [2]uint32{438, 438}},
	{"pivot_root", [2]uint32{155, 41}},
	{"prlimit64", [2]uint32{302, 261}},
	{"process_madvise", [2]uint32{440, 440}},
	{"process_mrelease", [2]uint32{448, 448}},
	{"process_vm_readv", [2]uint32{310, 270}},
	{"process_vm_writev", [2]uint32{311, 271}},
	{"ptrace", [2]uint32{101, 117}},
	{"quotactl", [2]uint32{179, 60}},
	{"quotactl_fd", [2]uint32{443, 443}},
	{"reboot", [2]uint32{169, 142}},
	{"removexattr", [2]uint32{197, 14}},
	{"removexattrat", [2]uint32{466, 466}},
	{"request_key", [2]uint32{249, 218}},
	{"sched_setaffinity", [2]uint32{203, 122}},
	{"sched_setattr", [2]uint32{314, 274}},
	{"sched_setparam", [2]uint32{142, 118}},
	{"sched_setscheduler", [2]uint32{144, 119}},
	{"semctl", [2]uint32{66, 191}},
	{"semget", [2]uint32{64, 190}},
	{"semop", [2]uint32{65, 193}},
	{"semtimedop", [2]uint32{220, 192}},
	{"setdomainname", [2]uint32{171, 162}},
	{"sethostname", [2]uint32{170, 161}},
	{"setns", [2]uint32{308, 268}},
	{"setpriority", [2]uint32{141, 140}},
	{"settimeofday", [2]uint32{164, 170}},
	{"setxattr", [2]uint32{188, 5}},
	{"setxattrat", [2]uint32{463, 463}},
	{"shmat", [2]uint32{30, 196}},
	{"shmctl", [2]uint32{31, 195}},
	{"shmdt", [2]uint32{67, 197}},
	{"shmget", [2]uint32{29, 194}},
	{"socket", [2]uint32{41, 198}},
	{"socketpair", [2]uint32{53, 199}},
	{"swapoff", [2]uint32{168, 225}},
	{"swapon", [2]uint32{167, 224}},
	{"syslog", [2]uint32{103, 116}},
	{"umount2", [2]uint32{166, 39}},
	{"unshare", [2]uint32{272, 97}},
	{"uselib", [2]uint32{134, none}},
	{"userfaultfd", [2]uint32{323, 282}},
	{"utime", [2]uint32{132, none}},
	{"utimensat", [2]uint32{280, 88}},
	{"utimes", [2]uint32{235, none}},
	{"vhangup", [2]uint32{153, 58}},
}
