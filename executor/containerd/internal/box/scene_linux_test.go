// SPDX-License-Identifier: Apache-2.0

package box_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
	"github.com/evoseal/containment/executor/containerd/internal/box/supervisor"
	"github.com/evoseal/containment/internal/seccomp"
	"github.com/evoseal/containment/internal/supervise"
	"github.com/evoseal/containment/internal/testenv"
)

// testMarker makes this test binary the first program of a box: it builds a view of the files, as a runtime would, and
// executes the supervisor in its place.
const testMarker = "containment-test-root"

// base is the first host id of the boxes of these tests; size is the size of their tmpfs.
const (
	base    = 0x7e570000
	volume  = "size=4m,nr_inodes=256"
	testDir = "/tmp"
)

func init() {
	if len(os.Args) == 4 && os.Args[1] == testMarker {
		err := enter(os.Args[2], os.Args[3])
		fmt.Fprintln(os.Stderr, "test root:", err)
		os.Exit(3)
	}
}

func enter(root, program string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64", "/dev", program} {
		if err := unix.Mount(dir, filepath.Join(root, place(dir, program)), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s: %w", dir, err)
		}
	}
	for _, dir := range []string{"/box", "/tmp", "/dev/shm"} {
		if err := unix.Mount("tmpfs", filepath.Join(root, dir), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, volume); err != nil {
			return fmt.Errorf("tmpfs %s: %w", dir, err)
		}
	}
	if err := unix.Mount("proc", filepath.Join(root, "/proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("proc: %w", err)
	}
	if err := unix.Chroot(root); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return unix.Exec("/supervisor", []string{"/supervisor", supervisor.Marker}, nil)
}

func place(dir, program string) string {
	if dir == program {
		return "/supervisor"
	}
	return dir
}

// testRoot makes an empty root with the mount points of a box.
func testRoot(t testing.TB) string {
	t.Helper()
	root, err := os.MkdirTemp(testDir, "box-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	for _, dir := range []string{"", "usr", "bin", "lib", "lib64", "dev", "box", "tmp", "proc"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "supervisor"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// testBox is a supervisor that runs.
type testBox struct {
	*box.Session
	cmd    *exec.Cmd
	toBox  *os.File
	stderr *bytes.Buffer
	ended  chan struct{}
}

// start starts the supervisor as process 1 of namespaces of its own, with the capabilities that a box has.
func start(t testing.TB) *testBox {
	t.Helper()
	testenv.Need(t, "root")
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	self, err := self()
	if err != nil {
		t.Fatal(err)
	}
	b := &testBox{toBox: inW, stderr: &bytes.Buffer{}, ended: make(chan struct{})}
	b.cmd = exec.Command(self, testMarker, testRoot(t), self)
	b.cmd.Env = []string{}
	b.cmd.Stdin, b.cmd.Stdout, b.cmd.Stderr = inR, outW, b.stderr
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: base, Size: 65536}}
	b.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
			unix.CLONE_NEWUTS,
		UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
		Credential: &syscall.Credential{},
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inR.Close()
	outW.Close()
	b.Session = box.NewSession(inW, outR)
	go func() {
		_ = b.cmd.Wait()
		close(b.ended)
	}()
	t.Cleanup(func() {
		_ = b.cmd.Process.Kill()
		<-b.ended
		_ = b.Close()
		if t.Failed() && b.stderr.Len() > 0 {
			t.Logf("supervisor: %s", b.stderr)
		}
	})
	return b
}

// self is a copy of the test binary where everybody may execute it. There is one, made before anything forks: a copy that
// is still open for writing in another child cannot be executed.
var self = sync.OnceValues(func() (string, error) {
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(testDir, "box-self-")
	if err != nil {
		return "", err
	}
	selfDir = dir
	path := filepath.Join(dir, "self")
	return path, errors.Join(os.WriteFile(path, data, 0o755), os.Chmod(dir, 0o755))
})

var selfDir string

func TestMain(m *testing.M) {
	code := m.Run()
	if selfDir != "" {
		_ = os.RemoveAll(selfDir)
	}
	os.Exit(code)
}

var allVolumes = []string{"/box", "/tmp", "/dev/shm"}

// open starts a box and opens it.
func open(t testing.TB) *testBox {
	t.Helper()
	b := start(t)
	if _, err := b.Open(t.Context(), box.Open{Hard: time.Minute, Dirs: box.DefaultDirs(), Volumes: allVolumes}); err != nil {
		<-b.ended
		t.Fatalf("%v; %s", err, b.stderr)
	}
	return b
}

func filter(t testing.TB) []byte {
	t.Helper()
	prog, err := seccomp.Assemble(seccomp.Options{Sockets: seccomp.SocketsAll, KernelIPC: true, OwnProcesses: true})
	if err != nil {
		t.Fatal(err)
	}
	return seccomp.Bytes(prog)
}

// shell is a job that runs a script.
func shell(t testing.TB, script string) box.Job {
	t.Helper()
	return box.Job{
		Stage: supervise.Job{
			Programs: []string{"/bin/sh"}, Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
			Dir: box.Workspace, Filter: filter(t),
			Rlimits: []supervise.Rlimit{{Resource: unix.RLIMIT_NOFILE, Soft: 64, Hard: 64}},
		},
		Limits: executor.Limits{Wall: 20 * time.Second}.WithDefaults(),
	}
}

// run runs a job in a new box, which must be willing to end afterwards.
func run(t testing.TB, job box.Job) box.Ending {
	t.Helper()
	return runIn(t, t.Context(), job)
}

func runIn(t testing.TB, ctx context.Context, job box.Job) box.Ending {
	t.Helper()
	b := open(t)
	end, err := b.Run(ctx, job)
	if err != nil {
		_ = b.Close()
		<-b.ended
		t.Fatalf("%v; %s", err, b.stderr)
	}
	if err := b.Exit(); err != nil {
		t.Error(err)
	}
	<-b.ended
	if code := b.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the supervisor ended with %d: %s", code, b.stderr)
	}
	return end
}
