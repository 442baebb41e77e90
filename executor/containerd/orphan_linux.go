// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopDaemonOf kills the daemon that a dead host program left in a directory. It is known by its command line, which names
// our configuration file there, and held by a pidfd: a number alone may be somebody else's by now.
func stopDaemonOf(dir string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	want := []byte("\x00--config\x00" + filepath.Join(dir, "config.toml") + "\x00")
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

// killHeld kills a process and waits for its end, if it still is what was found.
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
			return fmt.Errorf("containerd: daemon %d does not end", pid)
		}
		return nil
	}
}
