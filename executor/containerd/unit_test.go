// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package containerd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
)

func TestAccept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, danger, ok bool }{{false, false, true}, {true, false, false}, {true, true, true}} {
		f := runtimeFacts{name: Runc, version: "1.1.5", old: c.old}
		if err := f.accept(c.danger); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
		if strings.Contains(f.note(), "DangerAllowOldRuntime") != c.old {
			t.Errorf("%+v: %s", c, f.note())
		}
	}
}

// Whatever differs in a box makes another kind, but for what belongs to the single box.
func TestKind(t *testing.T) {
	t.Parallel()
	base := examplePlan(false)
	for name, change := range map[string]func(*plan){
		"args": func(p *plan) { p.Args = []string{"x"} }, "root": func(p *plan) { p.Root = "x" },
		"binds": func(p *plan) { p.Binds = p.Binds[1:] }, "memory": func(p *plan) { p.Memory++ },
		"cpus":  func(p *plan) { p.CPUs /= 2 },
		"tasks": func(p *plan) { p.Tasks++ }, "files": func(p *plan) { p.OpenFiles++ },
		"disk":   func(p *plan) { p.Work.Bytes++ },
		"inodes": func(p *plan) { p.Temp.Inodes++ }, "shm": func(p *plan) { p.Shm.Bytes++ },
		"gvisor": func(p *plan) { p.GVisor = true },
	} {
		p := base
		change(&p)
		if kindOf(base, time.Second).key == kindOf(p, time.Second).key {
			t.Errorf("%s: the same kind", name)
		}
	}
	same := base
	same.FirstID, same.Cgroup, same.Supervisor = 1, "x", "y"
	if kindOf(base, time.Second).key != kindOf(same, 59*time.Second).key {
		t.Error("what belongs to one box makes another kind")
	}
	if kindOf(base, time.Second).key == kindOf(base, 61*time.Second).key {
		t.Error("a box may end before a run of this length")
	}
}

func TestPastDeadline(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for label, want := range map[string]bool{"999": true, "1000": false, "1001": false, "": false, "x": false,
		"-1": true} {
		c := containers.Container{Labels: map[string]string{labelDeadline: label}}
		if pastDeadline(c, now) != want {
			t.Errorf("%q: %t", label, !want)
		}
	}
	if pastDeadline(containers.Container{}, now) {
		t.Error("a box without a deadline is past it")
	}
}

// A box that lacks anything that was ordered is not used.
func TestCheck(t *testing.T) {
	t.Parallel()
	p := examplePlan(false)
	good := func() box.Hello {
		h := box.Hello{
			PID: 1, Permitted: capabilityBits, Effective: capabilityBits, Bounding: capabilityBits, NoNewPrivs: true, Seccomp: 2,
			Hostname: Hostname, Interfaces: []string{"lo"}, UIDMap: "0 1879048192 65536", GIDMap: "0 1879048192 65536",
		}
		for target, v := range map[string]volume{box.Mount: p.Work, "/tmp": p.Temp, "/dev/shm": p.Shm} {
			h.Mounts = append(h.Mounts, box.Mounted{Target: target, Type: "tmpfs", Options: "rw", Size: v.Bytes,
				Inodes: v.Inodes})
		}
		for _, target := range append(targets(p.Binds), "/", box.SupervisorDir) {
			h.Mounts = append(h.Mounts, box.Mounted{Target: target, Type: "ext4", Options: "ro,nosuid"})
		}
		return h
	}
	if err := p.check(good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*box.Hello){
		"pid": func(h *box.Hello) { h.PID = 2 }, "uid": func(h *box.Hello) { h.UID = 1 },
		"groups":   func(h *box.Hello) { h.Groups = "0 27" },
		"bounding": func(h *box.Hello) { h.Bounding |= 1 << 21 }, "ambient": func(h *box.Hello) { h.Ambient = 1 },
		"no_new_privs": func(h *box.Hello) { h.NoNewPrivs = false }, "seccomp": func(h *box.Hello) { h.Seccomp = 0 },
		"network":    func(h *box.Hello) { h.Interfaces = []string{"eth0", "lo"} },
		"no network": func(h *box.Hello) { h.Interfaces = nil },
		"hostname":   func(h *box.Hello) { h.Hostname = "host" }, "environment": func(h *box.Hello) { h.Environment = 2 },
		"size":      func(h *box.Hello) { h.Mounts[0].Size *= 2 },
		"inodes":    func(h *box.Hello) { h.Mounts[1].Inodes *= 2 },
		"kind":      func(h *box.Hello) { h.Mounts[2].Type = "ext4" },
		"missing":   func(h *box.Hello) { h.Mounts = h.Mounts[1:] },
		"written":   func(h *box.Hello) { h.Mounts[len(h.Mounts)-1].Options = "rw" },
		"user ids":  func(h *box.Hello) { h.UIDMap = "0 0 4294967295" },
		"group ids": func(h *box.Hello) { h.GIDMap = "" },
		"namespace": func(h *box.Hello) { h.Namespaces = ourNamespaces()[3:4] },
		"below": func(h *box.Hello) {
			h.Mounts = append(h.Mounts, box.Mounted{Target: "/opt/sdk/more", Type: "tmpfs", Options: "rw"})
		},
		"too many": func(h *box.Hello) {
			h.Mounts = append(h.Mounts, make([]box.Mounted, box.MaxListed)...)
		},
		"covered": func(h *box.Hello) {
			h.Mounts = append(h.Mounts, box.Mounted{Target: "/", Type: "tmpfs", Options: "rw"})
		},
	} {
		h := good()
		spoil(&h)
		if _, ok := errors.AsType[*DaemonError](p.check(h)); !ok {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestFindCgroups(t *testing.T) {
	t.Parallel()
	c := findCgroups(`30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
31 24 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 24 0:29 /inner /elsewhere rw - cgroup cgroup rw,memory
34 24 0:30 / /tmp rw - tmpfs tmpfs rw
garbage
`)
	want := []string{"/sys/fs/cgroup/unified/g", "/sys/fs/cgroup/pids/g", "/sys/fs/cgroup/cpu,cpuacct/g"}
	if diff := cmp.Diff(want, c.dirs("/g")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for controller, want := range map[string]string{
		"pids": "/sys/fs/cgroup/pids/g/f", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct/g/f",
		"memory": "/sys/fs/cgroup/unified/g/f",
	} {
		if got := c.file("/g", controller, "f"); got != want {
			t.Errorf("%s: %s", controller, got)
		}
	}
	if got := (cgroupFiles{}).file("/g", "pids", "f"); got != "" {
		t.Errorf("without cgroups: %s", got)
	}
}

func TestSlotRange(t *testing.T) {
	t.Parallel()
	for _, r := range []IDRange{{First: 1 << 16, Boxes: 0}, {First: 1<<16 + 1, Boxes: 1}, {First: 0xffff0000, Boxes: 1},
		{First: 1 << 16, Boxes: 1 << 20}} {
		if s, err := openSlots(t.TempDir(), r); err == nil {
			t.Errorf("%+v: accepted %v", r, s.close())
		}
	}
	file := filepath.Join(t.TempDir(), "subuid")
	if err := os.WriteFile(file, []byte("# x\nuser:2000:1000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		first, last uint64
		ok          bool
	}{{1000, 2000, true}, {1000, 2001, false}, {2999, 5000, false}, {3000, 5000, true}, {0, 1 << 32, false}} {
		if err := checkSubordinate(file, c.first, c.last); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// What a mount shows is what the caller may show, and no way to the daemon.
func TestLook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fine := t.TempDir()
	e := &Executor{conn: &conn{address: socket, sameFiles: true}, config: Config{RuntimeDir: "/run/x"}}
	for _, c := range []struct {
		mount executor.Mount
		setup bool
	}{
		{mount: executor.Mount{Source: fine, Target: "/proc"}}, {mount: executor.Mount{Source: fine, Target: "/dev/x"}},
		{mount: executor.Mount{Source: fine, Target: "/box/workspace/x"}},
		{mount: executor.Mount{Source: fine, Target: "/.containment"}},
		{mount: executor.Mount{Source: fine, Target: "/tmp"}}, {mount: executor.Mount{Source: fine, Target: "/run/x"}},
		{mount: executor.Mount{Source: fine, CopyOnWrite: true}},
		{executor.Mount{Source: dir}, true}, {executor.Mount{Source: socket}, true},
		{executor.Mount{Source: fine + "/missing"}, true},
		{executor.Mount{Source: "/dev/null", Target: "/x"}, true},
	} {
		_, err := e.look(executor.Spec{Mounts: []executor.Mount{c.mount}})
		_, isSetup := errors.AsType[*executor.SetupError](err)
		if err == nil || isSetup != c.setup || !c.setup && !errors.Is(err, executor.ErrUnsupported) {
			t.Errorf("%+v: %v", c.mount, err)
		}
	}
	spec := executor.Spec{Mounts: []executor.Mount{{Source: fine, Target: "/opt/x"}, {Source: fine}}}
	w, err := e.look(spec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bind{{fine, "/opt/x"}, {fine, fine}}, w.binds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(w.points, []mountPoint{{Path: "/opt/x", Dir: true}}) { // below /tmp the runtime makes them
		t.Errorf("mount points %+v", w.points)
	}

	// A daemon with other files: only what somebody vouches for.
	e.conn.sameFiles = false
	if _, err := e.look(spec); !errors.Is(err, executor.ErrUnsupported) {
		t.Errorf("unknown files: %v", err)
	}
	e.config.DaemonPath = []PathMap{{From: "/", To: "/outer"}, {From: fine, To: "/host"}}
	if w, err = e.look(spec); err != nil || w.binds[0].Source != "/host" {
		t.Errorf("%+v, %v", w, err)
	}
}

func TestAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := &conn{address: path, ns: "x"}
	for name, tc := range map[string]struct {
		fails int
		err   error
		tries int
		ok    bool
	}{
		"at once": {0, nil, 1, true}, "gone already": {9, errdefs.ErrNotFound, 1, true},
		"second time": {1, errors.New("busy"), 2, true}, "never": {9, errors.New("busy"), deleteTry, false},
	} {
		tries := 0
		err := c.again(t.Context(), "op", func(context.Context) error {
			if tries++; tries <= tc.fails {
				return tc.err
			}
			return nil
		})
		if (err == nil) != tc.ok || tries != tc.tries {
			t.Errorf("%s: %v after %d tries", name, err, tries)
		}
	}
}

func TestSkeleton(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "root")
	points := []mountPoint{{Path: "/usr/lib", Dir: true}, {Path: "/lib", Link: "usr/lib"}, {Path: "/etc/ssl/cert.pem"},
		{Path: "/lib/x", Dir: true}}
	if err := makeSkeleton(dir, points); err != nil {
		t.Fatal(err)
	}
	for _, path := range append(mountPoints(), "/usr/lib/x", "/etc/passwd", "/etc/ssl/cert.pem") {
		fi, err := os.Lstat(filepath.Join(dir, path))
		if err != nil || fi.Mode().Perm()&0o004 == 0 {
			t.Errorf("%s: %v, %v", path, fi, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(dir, "lib")); err != nil || to != "usr/lib" {
		t.Errorf("%q, %v", to, err)
	}
	outside := filepath.Join(t.TempDir(), "root")
	if err := makeSkeleton(outside, []mountPoint{{Path: "/out", Link: "/"},
		{Path: "/out/planted", Dir: true}}); err == nil || exists("/planted") {
		t.Errorf("a link led out of the root: %v", err)
	}
}

func TestStateID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := stateID(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := stateID(dir); err != nil || again != first {
		t.Errorf("%q, then %q, %v", first, again, err)
	}
	if other, err := stateID(t.TempDir()); err != nil || other == first {
		t.Errorf("two directories with one name: %q, %v", other, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "id"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := stateID(dir); err == nil {
		t.Errorf("a damaged name is taken: %q", id)
	}
}
