// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopDaemonOf kills the daemon that a dead host program left in a directory. It is known by its command line, which names
// our configuration file there.
func stopDaemonOf(dir string) error {
	return killMatching([]byte("\x00--config\x00" + filepath.Join(dir, "config.toml") + "\x00"))
}

// killShims kills the shims of a box of which the daemon knows nothing: if a client dies while a task is being made, the
// daemon may give the task up and forget the shim.
func (c *conn) killShims(id string) error {
	return errors.Join(
		killMatching(fmt.Appendf(nil, "\x00-namespace\x00%s\x00-id\x00%s\x00-address\x00%s\x00", c.ns, id, c.address)),
		killMatching(fmt.Appendf(nil, "\x00-namespace\x00%s\x00-address\x00%s\x00-id\x00%s\x00", c.ns, c.address, id)), // gVisor's
	)
}

// Where shims keep their sockets and runc its notes, whatever the daemon's own directories are (containerd 1.6 to 2.4).
const (
	shimSockets = "/run/containerd/s"
	runcNotes   = "/run/containerd/runc"
	runscNotes  = "/run/containerd/runsc"
)

// removeNotes removes what shim and runtime of a box leave that were killed. The names are those of this box alone.
func (c *conn) removeNotes(id string) error {
	if !c.sameFiles {
		return nil // other files, other names
	}
	socket := sha256.Sum256([]byte(filepath.Join(c.address, c.ns, id)))
	err := os.Remove(filepath.Join(shimSockets, fmt.Sprintf("%x", socket)))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(runcNotes, c.ns, id)))
}

// forgetSandboxes removes what gVisor keeps for a namespace as long as it has boxes, and does not remove itself: the mount of an
// empty network namespace. If anybody has a box in the namespace, nothing happens.
func (c *conn) forgetSandboxes() {
	dir := filepath.Join(runscNotes, c.ns)
	const empty = "null-netns"
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1 || len(entries) == 1 && entries[0].Name() != empty {
		return
	}
	if list, err := c.list(context.Background()); err != nil || len(list) > 0 {
		return
	}
	_ = unix.Unmount(filepath.Join(dir, empty), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	_ = os.Remove(filepath.Join(dir, empty))
	_ = os.Remove(dir)
}

// killMatching kills the processes with these arguments in a row, which nobody has by chance.
func killMatching(want []byte) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if err != nil || !bytes.Contains(line, want) {
			continue
		}
		errs = append(errs, killHeld(pid, want))
	}
	return errors.Join(errs...)
}

// killHeld kills a process and waits for its end, if it still is what was found: a number alone may be somebody else's by now.
func killHeld(pid int, want []byte) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(fd)
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !bytes.Contains(line, want) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, syscall.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for deadline := time.Now().Add(stopTime); ; {
		n, err := unix.Poll(poll, int(max(time.Until(deadline).Milliseconds(), 0)))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return os.NewSyscallError("poll", err)
		case n == 0:
			return fmt.Errorf("containerd: process %d does not end", pid)
		}
		return nil
	}
}
