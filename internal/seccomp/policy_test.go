// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"testing"
)

const dirty = 0xdeadbeef << 32 // rubbish that the kernel ignores in the upper half of an int

// TestPolicy pins what the list is for, call by call, in the words of the kernel's interface and not of the list.
func TestPolicy(t *testing.T) {
	t.Parallel()
	strict := Options{}
	all := Options{Sockets: SocketsAll, KernelIPC: true, Affinity: true, OwnProcesses: true, PathMetadata: true,
		PathAttributes: true, FileMetadata: true}
	unix := Options{Sockets: SocketsUnix}
	const allowed Answer = 0
	for _, c := range []struct {
		call string
		args []uint64
		o    Options
		want Answer
	}{
		{"socket", []uint64{1, 1}, strict, EAFNOSUPPORT},
		{"socket", []uint64{2, 1}, strict, EAFNOSUPPORT},
		{"socket", []uint64{1, 1}, unix, allowed},
		{"socket", []uint64{1 | dirty, 1}, unix, allowed},
		{"socket", []uint64{2, 1}, unix, EAFNOSUPPORT},
		{"socket", []uint64{2 | dirty, 1}, unix, EAFNOSUPPORT},
		{"socket", []uint64{1, 1}, all, allowed},
		{"socket", []uint64{2, 1 | 0x80000 | 0x800}, all, allowed},
		{"socket", []uint64{10, 2}, all, allowed},
		{"socket", []uint64{16, 3, 0}, all, allowed},
		{"socket", []uint64{16 | dirty, 3, 0 | dirty}, all, allowed},
		{"socket", []uint64{16, 3, 12}, all, EPROTONOSUPPORT},
		{"socket", []uint64{16 | dirty, 3, 12}, all, EPROTONOSUPPORT},
		{"socket", []uint64{2, 10}, all, EAFNOSUPPORT},
		{"socket", []uint64{2 | dirty, 10 | 0x80000 | dirty}, all, EAFNOSUPPORT},
		{"socket", []uint64{40, 1}, all, EAFNOSUPPORT},
		{"socket", []uint64{40 | dirty, 1}, all, EAFNOSUPPORT},
		{"socket", []uint64{17, 3}, all, EAFNOSUPPORT},
		{"socket", []uint64{38, 5}, all, EAFNOSUPPORT},
		{"socketpair", []uint64{1, 1}, strict, allowed},
		{"socketpair", []uint64{1, 5 | 0x80000}, strict, allowed}, // SOCK_SEQPACKET, close-on-exec
		{"socketpair", []uint64{30 | dirty, 1}, all, EAFNOSUPPORT},
		{"socketpair", []uint64{1, 2}, all, EPROTONOSUPPORT}, // SOCK_DGRAM can send to any name
		{"socketpair", []uint64{1, 2 | 0x800 | dirty}, strict, EPROTONOSUPPORT},
		{"socketpair", []uint64{1, 3}, strict, EPROTONOSUPPORT}, // SOCK_RAW becomes SOCK_DGRAM
		{"bind", nil, strict, EPERM},
		{"connect", nil, strict, EPERM},
		{"accept4", nil, strict, EPERM},
		{"bind", nil, unix, allowed},
		{"fcntl", []uint64{3, 1024}, all, EPERM}, // F_SETLEASE
		{"fcntl", []uint64{3, 1024 | dirty}, all, EPERM},
		{"fcntl", []uint64{3, 6}, strict, allowed}, // F_SETLK
		{"mmap", []uint64{0, 4096, 3, 0x40022}, all, ENOMEM},
		{"mmap", []uint64{0, 4096, 3, 0x40022 | dirty}, all, ENOMEM},
		{"mmap", []uint64{0, 4096, 3, 0x22}, strict, allowed},
		{"memfd_create", []uint64{0, 4}, all, ENOMEM},
		{"memfd_create", []uint64{0, 3}, strict, allowed},
		{"setxattr", nil, Options{PathMetadata: true}, EPERM},
		{"setxattr", nil, all, allowed},
		{"fsetxattr", nil, strict, EPERM},
		{"fchmod", nil, strict, EPERM},
		{"fchmod", nil, all, allowed},
		{"ioctl", []uint64{3, 0x40086602 | dirty}, strict, EPERM}, // FS_IOC_SETFLAGS
		{"ioctl", []uint64{3, 0x40086602}, all, allowed},
		{"ioctl", []uint64{3, 0x5000940f}, strict, EPERM},   // btrfs
		{"ioctl", []uint64{3, 0x80086601}, strict, allowed}, // FS_IOC_GETFLAGS

		{"ioctl", []uint64{0, 0x5412}, all, EPERM},
		{"ioctl", []uint64{0, 0x5412 | dirty}, all, EPERM},
		{"ioctl", []uint64{0, 0x541c | 1<<32}, all, EPERM},
		{"ioctl", []uint64{0, 0x5423}, all, EPERM},
		{"ioctl", []uint64{0, 0x5401}, strict, allowed},
		{"ioctl", []uint64{0, 0x5413}, strict, allowed},

		{"clone", []uint64{0x11}, strict, allowed},              // fork
		{"clone", []uint64{0x4111}, strict, allowed},            // vfork
		{"clone", []uint64{0x003d0f00}, strict, allowed},        // a thread of libc
		{"clone", []uint64{0x00050f00}, strict, allowed},        // a thread of Go
		{"clone", []uint64{0x1000 | 0x11}, strict, allowed},     // with a pidfd
		{"clone", []uint64{0x10000000 | 0x11}, all, EPERM},      // user namespace
		{"clone", []uint64{0x20000 | 0x11 | dirty}, all, EPERM}, // mount namespace
		{"clone", []uint64{0x40000000}, all, EPERM},             // network namespace
		{"clone", []uint64{0x80 | 0x11}, strict, allowed},       // part of the exit signal
		{"unshare", []uint64{0x80}, all, EPERM},                 // time namespace
		{"unshare", []uint64{0x10000000}, all, EPERM},           // user namespace
		{"unshare", []uint64{0x10000000 | dirty}, all, EPERM},
		{"unshare", []uint64{0x100000}, all, EPERM},           // a flag yet unknown
		{"unshare", []uint64{1 << 40}, all, EPERM},            // a flag yet unknown
		{"unshare", []uint64{0x200 | 0x400}, strict, allowed}, // CLONE_FS, CLONE_FILES
		{"clone3", nil, all, ENOSYS},
		{"io_uring_setup", nil, all, ENOSYS},
		{"shmget", nil, strict, ENOSYS},
		{"mq_open", nil, strict, ENOSYS},
		{"shmget", nil, all, allowed},
		{"mq_open", nil, all, allowed},
		{"sched_setaffinity", nil, strict, EPERM},
		{"sched_setaffinity", nil, all, allowed},
		{"sched_setaffinity", []uint64{7}, Options{Affinity: true}, EPERM},
		{"sched_setaffinity", []uint64{0}, Options{Affinity: true}, allowed},
		{"prlimit64", []uint64{0, 7, 0x7fff00000000}, strict, allowed}, // setrlimit
		{"prlimit64", []uint64{9, 7, 0}, strict, allowed},              // a question
		{"prlimit64", []uint64{9, 7, 0x7fff00000000}, strict, EPERM},   // only the upper half of the pointer is set
		{"prlimit64", []uint64{9, 7, 0x1000}, strict, EPERM},           // only the lower half
		{"prlimit64", []uint64{9, 7, 0x1000}, all, allowed},
		{"setpriority", []uint64{0, 0, 19}, strict, allowed}, // nice
		{"setpriority", []uint64{0, 9, 19}, strict, EPERM},   // another process
		{"setpriority", []uint64{2, 0, 19}, strict, EPERM},   // the whole uid
		{"ioprio_set", []uint64{3, 0}, strict, EPERM},        // the whole uid
		{"move_pages", []uint64{0}, strict, allowed},
		{"fchmodat", nil, strict, EPERM},
		{"fchmodat2", nil, strict, EPERM},
		{"fchmodat", nil, all, allowed},
		{"utimensat", []uint64{3, 0}, Options{FileMetadata: true}, allowed}, // futimens
		{"utimensat", []uint64{3, 0}, strict, EPERM},
		{"utimensat", []uint64{3, 0x1000}, strict, EPERM},
		{"utimensat", []uint64{3, 0x7fff00000000}, strict, EPERM},
		{"move_pages", []uint64{9}, strict, EPERM},
	} {
		for _, a := range []abi{amd64, arm64} {
			nr, known := a.number(c.call)
			if !known || nr == none {
				t.Fatalf("%s: no number on %s", c.call, a.name)
			}
			want := uint32(retAllow)
			if c.want != allowed {
				want = retErrno | uint32(c.want)
			}
			d := data{nr: nr, arch: a.audit}
			copy(d.args[:], c.args)
			if got := simulate(t, machine(t, a, c.o), d); got != want {
				t.Errorf("%s: %s%#x under %+v: action %#x, want %#x (%v)", a.name, c.call, c.args, c.o, got, want, c.want)
			}
		}
	}
}
