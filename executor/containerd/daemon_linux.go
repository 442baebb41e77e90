// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/hostrun"
)

const (
	readyTime = 20 * time.Second // until a daemon answers; it looks for file systems and plug-ins first
	stopTime  = 5 * time.Second  // from SIGTERM to SIGKILL
	maxLog    = 4 << 10          // of what it printed, in an error
)

// Daemon is a private daemon. Shims outlive it by design; Close ends them as well.
type Daemon struct {
	dir    string
	binary string
	path   string
	logger *slog.Logger

	mu   sync.Mutex // for cmd and done, which change with a restart
	cmd  *exec.Cmd
	done chan error
}

// StartDaemon starts a daemon with a root, a state and sockets of its own, for tests and for hosts without one. The caller
// must be root. A directory that an earlier daemon left is taken over with the boxes in it.
func StartDaemon(ctx context.Context, c DaemonConfig) (*Daemon, error) {
	if os.Geteuid() != 0 {
		return nil, daemonError("the caller is not root", "run as root, or start a daemon and set Config.Address", nil)
	}
	dir, err := filepath.Abs(c.Dir)
	if c.Dir == "" || err != nil || len(dir) > maxDaemonDir {
		return nil, daemonError(fmt.Sprintf("DaemonConfig.Dir %q must be a path of at most %d bytes", c.Dir, maxDaemonDir), "name another one", err)
	}
	d := &Daemon{dir: dir, path: cmp.Or(c.Path, executor.DefaultPath), logger: c.Logger}
	if d.logger == nil {
		d.logger = slog.New(slog.DiscardHandler)
	}
	if d.binary, err = findIn(d.path, cmp.Or(c.Binary, "containerd")); err != nil {
		return nil, daemonError("there is no program containerd", "install the package containerd, or set DaemonConfig.Binary", err)
	}
	v, err := binaryVersion(ctx, d.binary)
	if err != nil {
		return nil, daemonError("its version cannot be read", "set DaemonConfig.Binary", err)
	}
	if err := hostrun.MakeDir(dir); err != nil {
		return nil, daemonError("no directory", "set DaemonConfig.Dir", err)
	}
	if err := os.WriteFile(d.configFile(), []byte(daemonConfig(v, dir)), 0o600); err != nil {
		return nil, daemonError("no configuration", "set DaemonConfig.Dir", err)
	}
	left := exists(filepath.Join(dir, "root"))
	if err := d.start(ctx); err != nil {
		if left { // by an earlier daemon, whose boxes may live: without the directory nobody could end them
			return nil, errors.Join(err, d.stop())
		}
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func daemonError(reason, fix string, err error) error {
	return &executor.UnsupportedError{
		Executor: name, Reason: "private daemon: " + reason, Fix: fix, Err: err,
	}
}

func (d *Daemon) configFile() string { return filepath.Join(d.dir, "config.toml") }
func (d *Daemon) logFile() string    { return filepath.Join(d.dir, "log") }

// Socket is the address for [Config.Address].
func (d *Daemon) Socket() string { return daemonSocket(d.dir) }

// start runs the program and waits until it answers on our socket: a daemon that does not understand its configuration
// listens somewhere else.
func (d *Daemon) start(ctx context.Context) error {
	log, err := os.OpenFile(d.logFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return daemonError("no log file", "set DaemonConfig.Dir", err)
	}
	defer log.Close()
	if err := os.Remove(d.Socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return daemonError("an old socket cannot be removed", "set DaemonConfig.Dir", err)
	}
	cmd := exec.Command(d.binary, "--config", d.configFile(), "--log-level", "warn")
	cmd.Env = []string{"PATH=" + d.path}
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	// A signal for the caller's group is not for it; the caller's death is.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // whose end is what the kernel takes for the parent's death
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			done <- cmd.Wait()
			close(done)
		}
	}()
	if err := <-started; err != nil {
		return daemonError("it does not start", "set DaemonConfig.Binary", err)
	}
	d.mu.Lock()
	d.cmd, d.done = cmd, done
	d.mu.Unlock()
	return d.ready(ctx, done)
}

func (d *Daemon) ready(ctx context.Context, done <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		c, err := dial(ctx, d.Socket(), DefaultNamespace)
		if err == nil {
			return c.close()
		}
		select {
		case <-ctx.Done():
			return daemonError("it does not answer: "+d.lastWords(), "look at its log", errors.Join(err, context.Cause(ctx)))
		case exit := <-done:
			return daemonError("it ended: "+d.lastWords(), "look at its log", exit)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// lastWords are the end of what it printed.
func (d *Daemon) lastWords() string {
	text, err := os.ReadFile(d.logFile())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text[max(len(text)-maxLog, 0):]))
}

// Close ends every box that the daemon still has, the daemon, and removes the directory.
func (d *Daemon) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if d.alive() {
		errs = append(errs, d.empty(ctx))
	}
	errs = append(errs, d.stop(), unmountBelow(d.dir))
	if err := errors.Join(errs...); err != nil {
		return err // what remains is in the directory
	}
	return os.RemoveAll(d.dir)
}

func (d *Daemon) alive() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd == nil {
		return false
	}
	select {
	case <-d.done:
		return false
	default:
		return true
	}
}

// empty deletes all containers of all namespaces.
func (d *Daemon) empty(ctx context.Context) error {
	c, err := dial(ctx, d.Socket(), DefaultNamespace)
	if err != nil {
		return err
	}
	defer c.close()
	ask, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	names, err := c.client.NamespaceService().List(ask)
	if err != nil {
		return explain("list namespaces", err)
	}
	var errs []error
	for _, ns := range names {
		c.ns = ns
		list, err := c.list(ctx)
		errs = append(errs, err)
		for _, container := range list {
			errs = append(errs, c.destroy(ctx, container.ID))
		}
	}
	return errors.Join(errs...)
}

func (d *Daemon) stop() error {
	d.mu.Lock()
	cmd, done := d.cmd, d.done
	d.mu.Unlock()
	if cmd == nil {
		return nil
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may be dead already
	select {
	case <-done:
		return nil
	case <-time.After(stopTime):
	}
	_ = cmd.Process.Kill()
	select {
	case <-done:
		return nil
	case <-time.After(stopTime):
		return fmt.Errorf("containerd: daemon %d cannot be killed", cmd.Process.Pid)
	}
}

// unmountBelow unmounts what is mounted below a directory, the innermost first.
func unmountBelow(dir string) error {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var points []string
	for line := range strings.Lines(string(text)) {
		const mountPoint = 4
		if f := strings.Fields(line); len(f) > mountPoint && strings.HasPrefix(f[mountPoint], dir+"/") {
			points = append(points, f[mountPoint])
		}
	}
	var errs []error
	for i := len(points) - 1; i >= 0; i-- {
		if err := unix.Unmount(points[i], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			errs = append(errs, &fs.PathError{Op: "unmount", Path: points[i], Err: err})
		}
	}
	return errors.Join(errs...)
}

// findIn looks a program up in a search path that is not the caller's.
func findIn(path, program string) (string, error) {
	if filepath.IsAbs(program) {
		return exec.LookPath(program)
	}
	if program != filepath.Base(program) {
		return "", &fs.PathError{Op: "look up", Path: program, Err: fs.ErrInvalid}
	}
	for _, dir := range filepath.SplitList(path) {
		if found, err := exec.LookPath(filepath.Join(dir, program)); err == nil && filepath.IsAbs(found) {
			return found, nil
		}
	}
	return "", &fs.PathError{Op: "look up", Path: program, Err: fs.ErrNotExist}
}

// binaryVersion asks a program for its version.
func binaryVersion(ctx context.Context, binary string) (version, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "--version")
	cmd.Env, cmd.Dir, cmd.WaitDelay = []string{}, "/", time.Second
	out, err := cmd.Output()
	if err != nil {
		return version{}, err
	}
	v, ok := parseVersion(string(out))
	if !ok {
		return version{}, fmt.Errorf("%s calls itself %.60q", binary, out)
	}
	return v, nil
}
