// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor/containerd"
	"github.com/evoseal/containment/internal/testenv"
)

// daemonPath is where another daemon, shim or runtime is taken from.
var daemonPath = flag.String("daemon.path", "", "where containerd, its shims and runc are, if not in DefaultPath")

// mountsMarker names, for this program started again by itself, the state of its mount namespace: fresh, or ready.
const mountsMarker = "CONTAINMENT_TEST_MOUNTS"

func TestMain(m *testing.M) {
	if where := os.Getenv(hostMarker); where != "" {
		hostProgram(parseSite(where))
	}
	if real := os.Getenv(shimMarker); real != "" {
		exitWith(startShim(real, os.Args[1:]))
	}
	if os.Geteuid() == 0 && os.Getenv(mountsMarker) != "ready" {
		switch os.Getenv(mountsMarker) {
		case "":
			runtime.LockOSThread() // whose end is what the kernel takes for the parent's death
			if err := apart(os.Args[1:]).Run(); !errors.Is(err, unix.EPERM) {
				exitWith(err)
			} // else a root that may not make boxes either
		default:
			if err := ownMemory(); err != nil {
				exitWith(err)
			}
		}
	}
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))) // they mostly wait for others
	}
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// exitWith ends the program as an error, or a child, has ended.
func exitWith(err error) {
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		os.Exit(0)
	case ended && exit.Exited():
		os.Exit(exit.ExitCode())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// apart starts this program again in a mount namespace of its own: what is mounted, and what lies in /dev/shm, is
// counted by tests, and must not be that of other packages' tests.
func apart(args []string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0], cmd.Stdout, cmd.Stderr = os.Args[0], os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), mountsMarker+"=fresh")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// ownMemory gives the new namespace its own /dev/shm.
func ownMemory() error {
	if err := unix.Mount("tests", shm, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return fmt.Errorf("mount %s: %w", shm, err)
	}
	return os.Setenv(mountsMarker, "ready")
}

const shm = "/dev/shm"

// shortDir makes a directory that everybody may search and whose name is short enough for sockets. It is in memory:
// the daemon waits for the disk several times for each box.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := makeShort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func makeShort() (string, error) {
	dir, err := os.MkdirTemp(shm, "ctr-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}

// site is what tests at the same daemon have apart: the containerd namespace, by which cgroups and the runtime's
// notes are named too, and the directory for everything else.
type site struct{ socket, namespace, dir string }

func (s site) String() string { return s.socket + " " + s.namespace + " " + s.dir }

func parseSite(text string) site {
	part := strings.Fields(text)
	return site{part[0], part[1], part[2]}
}

// siteMarker names the site of the test that started this process again.
const siteMarker = "CONTAINMENT_TEST_SITE"

// daemon returns a new site at the daemon that tests share. A test that executes itself once more shares its own with
// that process, which will be killed.
func daemon(t testing.TB) site {
	t.Helper()
	needDaemon(t)
	if where := os.Getenv(siteMarker); where != "" {
		return parseSite(where)
	}
	socket, err := shared.start()
	if err != nil {
		t.Fatal(err)
	}
	return newSite(t, socket)
}

func needDaemon(t testing.TB) {
	t.Helper()
	testenv.Need(t, "root")
	testenv.Need(t, "containerd")
	testenv.Need(t, "runc")
}

func newSite(t testing.TB, socket string) site {
	t.Helper()
	dir := shortDir(t)
	return site{socket, filepath.Base(dir), filepath.Join(dir, "rt")}
}

// shared are the daemon and the executor of all tests that neither kill nor count. TestMain closes them.
var shared sharing

type sharing struct {
	mu       sync.Mutex
	dir      string
	daemon   *containerd.Daemon
	executor *containerd.Executor
}

func (s *sharing) start() (socket string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.daemon != nil {
		return s.daemon.Socket(), nil
	}
	if s.dir, err = makeShort(); err != nil {
		return "", err
	}
	config := containerd.DaemonConfig{Dir: filepath.Join(s.dir, "d"), Path: *daemonPath}
	if s.daemon, err = containerd.StartDaemon(context.Background(), config); err != nil {
		return "", err
	}
	return s.daemon.Socket(), nil
}

func (s *sharing) close() error {
	var errs []error
	if s.executor != nil {
		errs = append(errs, s.executor.Close())
	}
	if s.daemon != nil {
		errs = append(errs, s.daemon.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// usual returns the executor that tests share: boxes that are made for each run, with the host's programs in them.
func usual(t testing.TB) *containerd.Executor {
	t.Helper()
	needDaemon(t)
	socket, err := shared.start()
	if err != nil {
		t.Fatal(err)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.executor == nil {
		at := site{socket, filepath.Base(shared.dir), filepath.Join(shared.dir, "rt")}
		shared.executor = at.mustNew(t, containerd.Config{Root: containerd.Root{Reads: hostReads}})
	}
	return shared.executor
}

// hostReads are what a dynamic program of the host needs.
var hostReads = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64"}

// startDaemon starts a daemon in a directory, and closes it with the test.
func startDaemon(t testing.TB, c containerd.DaemonConfig) *containerd.Daemon {
	t.Helper()
	d, err := containerd.StartDaemon(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// ownDaemon starts a daemon that the test may kill.
func ownDaemon(t testing.TB) (*containerd.Daemon, site) {
	t.Helper()
	needDaemon(t)
	d := startDaemon(t, containerd.DaemonConfig{Dir: filepath.Join(shortDir(t), "d"), Path: *daemonPath})
	return d, newSite(t, d.Socket())
}

// config fills in what a site says.
func (s site) config(c containerd.Config) containerd.Config {
	c.Address, c.Namespace, c.RuntimeDir, c.DangerAllowOldRuntime = s.socket, s.namespace, s.dir, true
	return c
}

func (s site) mustNew(t testing.TB, c containerd.Config) *containerd.Executor {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ex, err := containerd.New(ctx, s.config(c))
	if err != nil {
		t.Fatal(err)
	}
	return ex
}

// open makes an executor at a site, and closes it with the test.
func (s site) open(t testing.TB, c containerd.Config) *containerd.Executor {
	t.Helper()
	ex := s.mustNew(t, c)
	t.Cleanup(func() {
		if err := ex.Close(); err != nil {
			t.Error(err)
		}
	})
	return ex
}
