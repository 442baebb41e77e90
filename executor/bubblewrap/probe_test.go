// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// leave keeps a file open at a number of the test's choice, without close-on-exec.
func leave(t *testing.T, f *os.File, at int) {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
}

const segmentSize = 4096

// segment makes memory that everybody may attach, and returns its key.
func segment(t *testing.T) int {
	t.Helper()
	key := int(time.Now().UnixNano()&0x3fffffff) | 1
	id, _, errno := unix.Syscall(unix.SYS_SHMGET, uintptr(key), segmentSize, 0o1000|0o666)
	if errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(func() { _, _, _ = unix.Syscall(unix.SYS_SHMCTL, id, 0, 0) })
	return key
}

// probeInherited looks at what a program gets without asking.
func probeInherited(q question) map[string]string {
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	buf := make([]byte, 256)
	n, _ := unix.Pread(7, buf, 0)
	parent := "/proc/" + strconv.Itoa(os.Getppid())
	fds, _ := os.ReadDir(parent + "/fd")
	host, _ := os.Hostname()
	pids, _ := filepath.Glob("/proc/[0-9]*")
	return map[string]string{
		"secret variable":      leak(strings.Contains(strings.Join(os.Environ(), "\n"), q.Secret)),
		"descriptor 7":         leak(strings.Contains(string(buf[:max(n, 0)]), q.Secret)),
		"no capability":        leak(strings.Trim(selfStatus("CapEff"), "0") != ""),
		"no_new_privs":         leak(selfStatus("NoNewPrivs") != "1"),
		"seccomp":              leak(selfStatus("Seccomp") != "2"),
		"processes":            leak(len(pids) > 3),
		"RLIMIT_NOFILE":        leak(limit.Max != q.Files),
		"hostname":             leak(host == q.Hostname),
		"HOME":                 leak(os.Getenv("HOME") == q.Home),
		"parent's environment": leak(canRead(parent + "/environ")),
		"parent's descriptors": leak(len(fds) > 0),
	}
}

func canRead(path string) bool {
	_, err := os.ReadFile(path)
	return err == nil
}

// selfStatus is a field of /proc/self/status.
func selfStatus(name string) string {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// probeCalls makes system calls with arguments that the kernel refuses for another reason: that errno shows that a call
// got through, and nothing takes effect.
func probeCalls(q question) map[string]string {
	call := func(nr uintptr, args ...uintptr) string {
		var a [4]uintptr
		copy(a[:], args)
		_, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], 0, 0)
		return leak(!slices.Contains([]unix.Errno{unix.EPERM, unix.ENOSYS, unix.EAFNOSUPPORT, unix.EACCES}, errno))
	}
	socket := func(family, kind int) string {
		fd, err := unix.Socket(family, kind, 0)
		if err != nil {
			return err.Error()
		}
		unix.Close(fd)
		return "ok"
	}
	const tiocsti, noCall = 0x5412, 9999
	var size [2]byte
	return map[string]string{
		"io_uring_setup":        call(unix.SYS_IO_URING_SETUP),
		"keyctl":                call(unix.SYS_KEYCTL, noCall),
		"AF_VSOCK":              leak(!errors.Is(errnoOf(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)), unix.EAFNOSUPPORT)),
		"nested user namespace": call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER|unix.CLONE_VM),
		"ptrace":                call(unix.SYS_PTRACE, noCall),
		"bpf":                   call(unix.SYS_BPF, noCall, uintptr(unsafe.Pointer(&size)), 2),
		"terminal ioctl":        call(unix.SYS_IOCTL, 0, tiocsti),
		"System V memory":       leak(attach(q.Segment)),
		"AF_UNIX":               socket(unix.AF_UNIX, unix.SOCK_STREAM),
		"AF_NETLINK":            socket(unix.AF_NETLINK, unix.SOCK_RAW),
	}
}

func errnoOf(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func attach(key int) bool {
	_, _, errno := unix.Syscall(unix.SYS_SHMGET, uintptr(key), segmentSize, 0o666)
	return errno == 0
}

// probeReach connects.
func probeReach(q question) map[string]string {
	dial := func(network, address string) string {
		start := time.Now()
		conn, err := net.DialTimeout(network, address, 2*time.Second)
		if err == nil {
			conn.Close()
		}
		if err != nil && time.Since(start) > time.Second {
			return "" // a refusal that hangs is none
		}
		return leak(err == nil)
	}
	return map[string]string{
		"loopback": dial("tcp", q.TCP), "abstract socket": dial("unix", q.Abstract), "runtime socket": dial("unix", q.Socket),
	}
}

// probeFiles asks for permission where doing it would be too much.
func probeFiles(q question) map[string]string {
	size := func(path string) string {
		var st unix.Statfs_t
		if unix.Statfs(path, &st) != nil {
			return "none"
		}
		return leak(int64(st.Blocks)*st.Bsize > q.Disk+int64(64<<20)) // the probe itself lies on the same file system
	}
	return map[string]string{
		"/etc/shadow":      leak(canRead("/etc/shadow")),
		"0600 file":        leak(containsSecret(q.File, q.Secret)),
		"write /":          leak(unix.Access("/", unix.W_OK) == nil),
		"write /etc":       leak(unix.Access("/etc", unix.W_OK) == nil),
		"core_pattern":     leak(unix.Access("/proc/sys/kernel/core_pattern", unix.W_OK) == nil),
		"size of /dev/shm": size("/dev/shm"),
		"size of /tmp":     size("/tmp"),
	}
}
