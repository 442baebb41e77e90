// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/executor/internal/runtest"
)

// procShown is what a run can open of /proc beside its own processes, on the kernels that this list was made on. All of it
// describes the machine and none of it what runs there. A new name in a newer kernel fails the test, so that somebody looks
// at it.
var procShown = strings.Fields(`key-users locks buddyinfo bus cgroups config.gz consoles cpuinfo crypto devices diskstats dma driver
	dynamic_debug execdomains fb filesystems fs interrupts iomem ioports irq kallsyms loadavg mdstat meminfo misc modules mounts
	mtrr net pagetypeinfo partitions pressure schedstat scsi self slabinfo softirqs stat swaps sys sysvipc thread-self tty uptime
	version version_signature vmallocinfo vmstat zoneinfo acpi asound bootconfig`)

func TestProc(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	r := mustRun(t, ex, sh(t, `
cd /proc; for f in *; do [ -r "$f" ] && echo "$f"; done | grep -v '^[0-9]'
for f in sys/kernel/printk_delay sys/kernel/core_pattern sysrq-trigger self/oom_score_adj self/comm; do
	(echo x > $f) 2>/dev/null && echo "written: $f"; done`))
	for name := range strings.Lines(r.Stdout.String()) {
		if name = strings.TrimSpace(name); !slices.Contains(procShown, name) {
			t.Errorf("/proc shows %q", name)
		}
	}
	// The kernel shows these two as far as they concern the run's own namespaces. The executor holds locks at this moment.
	says(t, ex, sh(t, "cat /proc/locks; grep -v ' 1000:' /proc/key-users"), "")
	if !strings.Contains(r.Stdout.String(), "meminfo") {
		t.Errorf("output %q", r.Stdout.String())
	}
}

// What is mounted, and whether it can be written: nothing else may be there, whoever calls.
func TestMountTable(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	r := mustRun(t, ex, sh(t, "cat /proc/self/mountinfo"))
	var writable, readable []string
	for line := range strings.Lines(r.Stdout.String()) {
		f := strings.Fields(line)
		options := strings.Split(f[5], ",")
		switch {
		case slices.Contains(options, "rw"):
			writable = append(writable, f[4])
		case slices.Contains(options, "ro"):
			readable = append(readable, f[4])
		}
		if !slices.Contains(options, "nosuid") || !slices.Contains(options, "nodev") && !strings.HasPrefix(f[4], "/dev/") {
			t.Errorf("%s has the options %v", f[4], options)
		}
	}
	slices.Sort(writable)
	want := []string{
		"/dev/full", "/dev/null", "/dev/shm", "/dev/urandom", "/dev/zero", "/home/containment", "/tmp", "/workspace",
	}
	if diff := cmp.Diff(want, writable); diff != "" {
		t.Errorf("writable mounts (-want +got):\n%s", diff)
	}
	for _, p := range []string{"/", "/etc", "/proc", "/usr"} {
		if !slices.Contains(readable, p) {
			t.Errorf("%s is not mounted read-only: %q", p, readable)
		}
	}
}

// The writable file systems are as large as the limit says, together for root and each for an ordinary caller, except that
// a workspace on the host's disk is as large as that.
func TestSizes(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	spec := sh(t, "for d in /tmp /dev/shm $HOME .; do stat -f -c '%n %b %S' $d; done")
	spec.Limits.Disk = 8 << 20
	r := mustRun(t, ex, spec)
	for line := range strings.Lines(r.Stdout.String()) {
		var name string
		var blocks, size int64
		if n, err := fmt.Sscan(line, &name, &blocks, &size); n != 3 || err != nil {
			t.Fatalf("output %q", r.Stdout.String())
		}
		if name == "." && !ex.Capabilities().Has(executor.DiskBounded) {
			continue
		}
		if got := blocks * size; got > spec.Limits.Disk+1<<20 {
			t.Errorf("%s has %d bytes, under a limit of %d", name, got, spec.Limits.Disk)
		}
	}
}

// Random trees with random rules: what the run can read and write of every file is what the rules say.
func TestViewOrder(t *testing.T) {
	ex := newExecutor(t, bubblewrap.Config{})
	for seed := range uint64(12) {
		tree := randomTree(seed)
		ws := t.TempDir()
		write(t, ws, tree.files)
		spec := executor.Spec{Workspace: ws, ReadOnly: tree.readOnly, Hidden: tree.hidden}
		var script strings.Builder
		for _, name := range tree.names {
			fmt.Fprintf(&script, "r=-; w=-; [ \"$(cat %[1]s 2>/dev/null)\" = text ] && r=r; (echo >> %[1]s) 2>/dev/null && w=w; echo %[1]s $r$w\n", name)
		}
		spec.Args = []string{"sh", "-c", script.String()}
		got := strings.Fields(mustRun(t, ex, spec).Stdout.String())
		for i := 0; i+1 < len(got); i += 2 {
			if want := tree.oracle(got[i]); got[i+1] != want {
				t.Errorf("seed %d: %s is %s, want %s; read-only %q, hidden %q", seed, got[i], got[i+1], want, tree.readOnly, tree.hidden)
			}
		}
		if len(got) != 2*len(tree.names) {
			t.Errorf("seed %d: %d answers for %d files", seed, len(got)/2, len(tree.names))
		}
	}
}

type ruledTree struct {
	files            map[string]string
	names            []string
	readOnly, hidden []string
}

// randomTree has 14 files three levels deep, and up to six rules for files, directories and what does not exist.
func randomTree(seed uint64) ruledTree {
	rng := newRand(seed)
	tree := ruledTree{files: map[string]string{}}
	for range 14 {
		parts := []string{strconv.Itoa(rng.IntN(2)), strconv.Itoa(rng.IntN(2)), "f" + strconv.Itoa(rng.IntN(4))}
		tree.files[path.Join(parts[rng.IntN(3):]...)] = "text"
	}
	for name := range tree.files {
		tree.names = append(tree.names, name)
	}
	slices.Sort(tree.names)
	for range 1 + rng.IntN(6) {
		rule := tree.names[rng.IntN(len(tree.names))]
		for range rng.IntN(3) {
			if dir := path.Dir(rule); dir != "." {
				rule = dir
			}
		}
		switch rng.IntN(5) {
		case 0:
			rule = path.Join(path.Dir(rule), "none")
			fallthrough
		case 1, 2:
			tree.readOnly = append(tree.readOnly, rule)
		default:
			tree.hidden = append(tree.hidden, rule)
		}
	}
	return tree
}

func (r ruledTree) oracle(name string) string {
	below := func(rule string) bool { return name == rule || strings.HasPrefix(name, rule+"/") }
	switch {
	case slices.ContainsFunc(r.hidden, below):
		return "--"
	case slices.ContainsFunc(r.readOnly, below):
		return "r-"
	}
	return "rw"
}

// Nothing appears on the host but below the state directory, and there nothing that a run does not remove.
func TestNothingOnTheHost(t *testing.T) {
	state := runtest.StateDir(t)
	ex := newExecutor(t, bubblewrap.Config{StateDir: state})
	ws := t.TempDir()
	write(t, ws, map[string]string{"f": "x"})
	spec := executor.Spec{
		Args: []string{"true"}, Workspace: ws, ReadOnly: []string{"f", "no/such"}, Hidden: []string{"nor/this"},
		Mounts: []executor.Mount{{Source: openDir(t), Target: "/workspace/a/b"}},
	}
	mustRun(t, ex, spec)
	entries, err := os.ReadDir(ws)
	if err != nil || len(entries) != 1 {
		t.Errorf("the workspace holds %v, %v", entries, err)
	}
	runtest.TracesGone(t, state)
}
