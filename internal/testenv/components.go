// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"maps"
	"slices"
	"sync"
)

// component is one thing of the host that tests may need.
type component struct {
	demandedBy func(uid int) bool // whether "all" demands it of this caller
	probe      func() error       // nil: it works for this caller; once per process
	get        string             // how to get it, for people
}

// missing is the attribute of a test that lacks the component.
func (c component) missing() string {
	const root, ordinary = 0, 1
	if c.demandedBy(root) || c.demandedBy(ordinary) {
		return attrMissing
	}
	return attrMissingOptional
}

// table holds every component. A probe tries the real thing where that leaves no trace, and never trusts a version
// number or the mere presence of a file where it can do so.
var table = map[string]component{
	// Identities. The gate runs every test once as each.
	"root":         {onlyRoot, once(probeRoot), "run the tests as uid 0; `make test` does both"},
	"unprivileged": {onlyOrdinary, once(probeUnprivileged), "run the tests as another uid than 0; `make test` does both"},

	// Programs.
	"setpriv":    tool("util-linux", "setpriv", "--version"),
	"mkfs.ext4":  tool("e2fsprogs", "mkfs.ext4", "-V"),
	"mkfs.xfs":   tool("xfsprogs", "mkfs.xfs", "-V"),
	"prlimit":    tool("util-linux", "prlimit", "--version"),
	"runc":       tool("runc", "runc", "--version"),
	"containerd": tool("containerd", "containerd", "--version"),
	"runsc": {nobodyUnlessNamed, once(probeRunsc), "put runsc, containerd-shim-runsc-v1 and a containerd from 1.7 on first in PATH; " +
		"executor/containerd/GVISOR.md says where they come from"},
	"git":     tool("git", "git", "--version"),
	"python3": tool("python3", "python3", "-c", "pass"),
	"node":    tool("nodejs", "node", "-e", "0"),
	"cc":      tool("gcc and libc6-dev", "cc", "--version"),
	"go":      {everybody, once(probeGo), "install Go from go.dev and put its bin directory into PATH"},
	"go-caches": {everybody, once(probeGoCaches), "give the caller a HOME that it owns, or GOCACHE and GOMODCACHE " +
		"that it can use; `make test` does"},
	"bubblewrap": {everybody, once(probeBubblewrap), "apt-get install bubblewrap, and allow unprivileged user namespaces"},

	// The kernel.
	"landlock": {everybody, once(probeLandlock), "a kernel from 5.13 on with CONFIG_SECURITY_LANDLOCK and \"landlock\" " +
		"in its lsm= list; inside a container, a seccomp profile that lets the landlock calls through"},
	"seccomp": {everybody, once(probeSeccomp), "a kernel with CONFIG_SECCOMP_FILTER"},
	"userns": {everybody, once(probeUserns), "sysctl kernel.unprivileged_userns_clone=1 and user.max_user_namespaces " +
		"above 0; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0; in a container, a profile that allows unshare"},

	// What root has, and an ordinary caller only by delegation.
	"cgroup": {onlyRoot, once(probeCgroup), "run as root where the memory and pids controllers are mounted writable, or " +
		"have a cgroup v2 subtree with both delegated (systemd: Delegate=yes)"},
	"tmpfs-mount": {onlyRoot, once(probeTmpfsMount), "run as root with CAP_SYS_ADMIN"},
	"loop-mount":  {onlyRoot, once(probeLoopMount), "run as root with CAP_SYS_ADMIN, the loop module and e2fsprogs"},
	"loop":        {nobodyUnlessNamed, once(probeLoop), "run as root with the loop module and /dev/loop-control"},

	// What the file system under the temporary directory has.
	"reflink": {nobodyUnlessNamed, once(probeReflink), "point TMPDIR at a Btrfs, or an XFS made with reflink=1"},
}

// Components returns the names of all components, sorted.
func Components() []string { return slices.Sorted(maps.Keys(table)) }

func once(probe func() error) func() error { return sync.OnceValue(probe) }

// tool is a program that a Debian package brings; it is there if it runs with these arguments and exits with 0.
func tool(pkg, name string, args ...string) component {
	return component{everybody, once(func() error { return runTool(name, args...) }), "apt-get install " + pkg}
}
