// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
	"github.com/evoseal/containment/internal/supervise"
)

// look reads what this process is and has. What cannot be read is left at zero, which claims nothing.
func look() (*stream.Hello, error) {
	h := &stream.Hello{
		Version: stream.Version, PID: os.Getpid(), UID: os.Geteuid(), GID: os.Getegid(), Environment: len(os.Environ()),
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, fmt.Errorf("the box needs /proc: %w", err)
	}
	readStatus(h, status)
	h.BootID = line("/proc/sys/kernel/random/boot_id")
	h.OOMScoreAdj, _ = strconv.Atoi(line("/proc/self/oom_score_adj"))
	h.Hostname, _ = os.Hostname()
	h.Mounts = mounts()
	h.Rlimits = rlimits()
	h.Interfaces = interfaces()
	h.UIDMap, h.GIDMap = idMap("/proc/self/uid_map"), idMap("/proc/self/gid_map")
	h.Namespaces = namespaces()
	h.Own = ownTime()
	return h, nil
}

// line reads a small file.
func line(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data[:min(len(data), 256)]))
}

func readStatus(h *stream.Hello, status []byte) {
	for one := range bytes.Lines(status) {
		name, rest, ok := bytes.Cut(one, []byte(":"))
		if !ok {
			continue
		}
		value := strings.TrimSpace(string(rest))
		set := func(v *uint64) { *v, _ = strconv.ParseUint(value, 16, 64) }
		switch string(name) {
		case "Groups":
			h.Groups = value
		case "CapInh":
			set(&h.Inheritable)
		case "CapPrm":
			set(&h.Permitted)
		case "CapEff":
			set(&h.Effective)
		case "CapBnd":
			set(&h.Bounding)
		case "CapAmb":
			set(&h.Ambient)
		case "NoNewPrivs":
			h.NoNewPrivs = value == "1"
		case "Seccomp":
			h.Seccomp, _ = strconv.Atoi(value)
		case "Threads":
			h.Threads, _ = strconv.Atoi(value)
		}
	}
}

func mounts() (list []stream.Mounted) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for one := range strings.Lines(string(data)) {
		if m, ok := parseMount(one); ok && len(list) < stream.MaxListed {
			list = append(list, m)
		}
	}
	return list
}

// parseMount reads a line of /proc/self/mountinfo, see proc_pid_mountinfo(5).
func parseMount(one string) (m stream.Mounted, ok bool) {
	head, tail, ok := strings.Cut(one, " - ")
	before, after := strings.Fields(head), strings.Fields(tail)
	if !ok || len(before) < 6 || len(after) < 1 {
		return m, false
	}
	m = stream.Mounted{Target: unescape(before[4]), Options: before[5], Type: after[0]}
	var st unix.Statfs_t
	if unix.Statfs(m.Target, &st) == nil {
		m.Size, m.Inodes = int64(st.Blocks)*st.Bsize, int64(st.Files)
	}
	return m, true
}

// unescape undoes the octal escapes of blanks and backslashes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func rlimits() (list []supervise.Rlimit) {
	for resource := range 16 {
		var l unix.Rlimit
		if unix.Getrlimit(resource, &l) == nil {
			list = append(list, supervise.Rlimit{Resource: resource, Soft: l.Cur, Hard: l.Max})
		}
	}
	return list
}

// interfaces lists those of the network namespace, in which nothing but lo should be.
func interfaces() (list []string) {
	data, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		return nil
	}
	for one := range strings.Lines(string(data)) {
		if name, _, ok := strings.Cut(one, ":"); ok && len(list) < stream.MaxListed {
			list = append(list, strings.TrimSpace(name))
		}
	}
	return list
}

// idMap reads how the ids of the user namespace are mapped, with the padding of the kernel taken out.
func idMap(path string) string { return strings.Join(strings.Fields(line(path)), " ") }

// ownTime is the CPU time of this process, without that of its children.
func ownTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// namespaces lists those of this process.
func namespaces() (list []string) {
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		if ns, err := os.Readlink("/proc/self/ns/" + kind); err == nil {
			list = append(list, ns)
		}
	}
	return list
}
