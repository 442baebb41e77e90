// SPDX-License-Identifier: Apache-2.0

package crashtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/rollback"
)

// namespaceVariable tells a test binary that it runs in a mount namespace of its own.
const namespaceVariable = "CONTAINMENT_CRASHTEST_NAMESPACE"

// images are the file systems that are cut, with the size of a device that mkfs accepts.
var images = map[string]struct {
	size int64
	mkfs []string
}{
	"ext4": {64 << 20, []string{"mkfs.ext4", "-q", "-F"}},
	"xfs":  {320 << 20, []string{"mkfs.xfs", "-q", "-f"}},
}

func needCuts(t *testing.T) {
	t.Helper()
	for _, component := range []string{"root", "mkfs.ext4", "mkfs.xfs", "loop-mount"} {
		testenv.Need(t, component)
	}
}

// TestPowerCut cuts the power of the tree's and the store's file system at random moments.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	needCuts(t)
	for _, c := range []struct{ name, tree, store string }{
		{"ext4", "ext4", ""}, {"xfs", "xfs", ""}, {"tree on ext4, store on xfs", "ext4", "xfs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if inNamespace(t) {
				cuts(t, newDevices(t, c.tree, c.store), rollback.SyncDurable, *crashCuts, true)
			}
		})
	}
}

// TestUnsyncedStoreIsCaught: a harness that lets a store pass that syncs nothing proves nothing.
func TestUnsyncedStoreIsCaught(t *testing.T) {
	t.Parallel()
	needCuts(t)
	for name := range images {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !inNamespace(t) {
				return
			}
			if err := cutUntilFound(t, newDevices(t, name, ""), rollback.SyncProcess, 10); err == nil {
				t.Error("ten cuts, and nothing was lost")
			} else {
				t.Logf("caught: %v", err)
			}
		})
	}
}

// inNamespace starts the calling subtest once more in a mount namespace of its own and returns false; there it returns
// true. What is mounted there is gone with the process, however that ends, and the loop devices with it. Without a
// namespace of its own a copy of the mount in somebody else's would keep the dead file system alive.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(namespaceVariable) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return true
	}
	args := []string{"-test.run=" + exact(t.Name()), "-test.v", "-test.timeout=60m",
		"-crash.cuts=" + strconv.Itoa(*crashCuts)}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), namespaceVariable+"=1", "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	if !bytes.Contains(out, []byte("--- PASS: "+t.Name())) && err == nil {
		t.Error("the subtest did not run in its namespace")
	}
	return false
}

// devices are one file system, or two: of the tree and of the store.
type devices struct {
	t      *testing.T
	kinds  []string
	nodes  []string // the loop devices
	points []string // where they are mounted
}

func newDevices(t *testing.T, kinds ...string) *devices {
	t.Helper()
	d := &devices{t: t}
	for i, kind := range kinds {
		if kind == "" {
			continue
		}
		image, point := filepath.Join(t.TempDir(), "image"), filepath.Join(t.TempDir(), fmt.Sprint("mount", i))
		f, err := os.Create(image)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(images[kind].size), f.Close(), os.Mkdir(point, 0o755)); err != nil {
			t.Fatal(err)
		}
		d.run(append(images[kind].mkfs, image)...)
		d.kinds, d.nodes, d.points = append(d.kinds, kind), append(d.nodes, attach(t, image)), append(d.points, point)
	}
	d.mount()
	t.Cleanup(d.unmount)
	return d
}

// attach makes a loop device of the image. The device keeps its number over all mounts, since a tree is known by its
// device too, and is gone with the descriptor, and so with this process, however that ends.
func attach(t *testing.T, image string) string {
	t.Helper()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 100 {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			t.Fatal(err)
		}
		node, err := os.OpenFile(fmt.Sprint("/dev/loop", n), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := unix.LoopConfig{Fd: uint32(f.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		if err = unix.IoctlLoopConfigure(int(node.Fd()), &c); err == nil {
			t.Cleanup(func() { _ = node.Close() })
			return node.Name()
		}
		if err = errors.Join(err, node.Close()); !errors.Is(err, unix.EBUSY) { // somebody else was faster
			t.Fatal(err)
		}
	}
	t.Fatal("no loop device is free")
	return ""
}

func (d *devices) run(args ...string) {
	d.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin")
	path, err := exec.LookPath(args[0])
	for _, dir := range []string{"/usr/sbin/", "/sbin/"} {
		if err != nil {
			path, err = exec.LookPath(dir + args[0])
		}
	}
	if err != nil {
		d.t.Fatal(err)
	}
	cmd.Path, cmd.Err = path, nil
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%q: %v: %s", args, err, out)
	}
}

func (d *devices) mount() {
	d.t.Helper()
	for i, node := range d.nodes {
		if err := unix.Mount(node, d.points[i], d.kinds[i], 0, ""); err != nil {
			d.t.Fatalf("mount %s on %s: %v", node, d.points[i], err)
		}
	}
}

func (d *devices) unmount() {
	d.t.Helper()
	for _, point := range d.points {
		err := unix.Unmount(point, 0)
		for i := 0; i < 100 && err == unix.EBUSY; i++ {
			time.Sleep(10 * time.Millisecond)
			err = unix.Unmount(point, 0)
		}
		if err != nil {
			d.t.Fatalf("umount %s: %v", point, err)
		}
	}
}

func (d *devices) tree() string  { return d.points[0] + "/tree" }
func (d *devices) store() string { return d.points[len(d.points)-1] + "/store" }

// each does something with every file system's root.
func (d *devices) each(f func(fd int) error) {
	d.t.Helper()
	for _, point := range d.points {
		fd, err := unix.Open(point, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			d.t.Fatal(err)
		}
		err = f(fd)
		if err = errors.Join(err, unix.Close(fd)); err != nil {
			d.t.Fatal(err)
		}
	}
}

// cut is the moment at which the power goes: nothing that is not on the device gets there any more.
func (d *devices) cut() {
	const shutdown, noLogFlush = 0x8004587d, 2 // FS_IOC_SHUTDOWN: _IOR('X', 125, __u32)
	d.each(func(fd int) error { return unix.IoctlSetPointerInt(fd, shutdown, noLogFlush) })
}

// cuts fails the test at the first thing that is lost.
func cuts(t *testing.T, d *devices, sync rollback.SyncMode, n int, lucky bool) {
	t.Helper()
	sc := newScene(t, d.store(), d.tree(), sync)
	d.each(unix.Syncfs)
	for trial := range n {
		if err := oneCut(t, d, sc, trial, lucky); err != nil {
			t.Fatalf("cut %d of %d: %v", trial+1, n, err)
		}
	}
}

// cutUntilFound cuts checkpoints and nothing else: of those a report is the easiest to lose.
func cutUntilFound(t *testing.T, d *devices, sync rollback.SyncMode, n int) (err error) {
	t.Helper()
	sc := newScene(t, d.store(), d.tree(), sync)
	d.each(unix.Syncfs)
	for range n {
		if err = oneCut(t, d, sc, 2, false); err != nil {
			return err
		}
	}
	return nil
}

// oneCut lets a worker work, cuts, and looks at what is there afterwards. With luck something syncs everything at some
// moment, as the kernel does on its own every few seconds: that is what makes half of a change durable.
func oneCut(t *testing.T, d *devices, sc *scene, trial int, lucky bool) error {
	t.Helper()
	o := sc.order(trial)
	w := start(t, o)
	reported := w.moment(t)
	if lucky && rand.IntN(3) > 0 {
		d.each(unix.Syncfs)
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
	}
	reported = append(reported, w.drain()...)
	d.cut()
	// What comes now came after the power had gone, and nobody would have seen it: on XFS the fsync of a directory
	// succeeds after a shutdown, since it looks only whether something of it still waits for the log.
	late := len(w.kill())
	d.unmount()
	d.mount()
	if err := sc.check(o, reported, late); err != nil {
		return fmt.Errorf("after %d calls: %w", len(reported), err)
	}
	d.each(unix.Syncfs) // what the check itself did is not what the next cut is about
	return nil
}

// exact is the pattern of one test by its full name.
func exact(name string) string {
	var pattern []string
	for part := range strings.SplitSeq(name, "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	return strings.Join(pattern, "/")
}
