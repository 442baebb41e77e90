// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

const (
	sysLandlockCreateRuleset = 444 // the same on every architecture
	landlockVersionFlag      = 1
	prSetSeccomp             = 22
	seccompModeFilter        = 2
	ficlone                  = 0x40049409 // on the architectures that encode ioctl numbers as x86 does

	// ordinaryID is the uid and gid under which root tries what the library does after its own uid switch.
	ordinaryID = 65534
)

// probeLandlock asks the kernel for its ABI version. Asking restricts nothing.
func probeLandlock() error {
	abi, _, errno := syscall.Syscall(sysLandlockCreateRuleset, 0, 0, landlockVersionFlag)
	if errno != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	if abi < 1 {
		return fmt.Errorf("landlock_create_ruleset: ABI version %d", abi)
	}
	return nil
}

// probeSeccomp offers the kernel a filter at address 0: EFAULT means that it would have read one.
func probeSeccomp() error {
	_, _, errno := syscall.Syscall(syscall.SYS_PRCTL, prSetSeccomp, seccompModeFilter, 0)
	if errno == syscall.EFAULT {
		return nil
	}
	return fmt.Errorf("prctl(PR_SET_SECCOMP): got %v instead of %w", errno, syscall.EFAULT)
}

// probeUserns makes a user namespace and uses it. Making alone does not suffice: some distributions hand out a user
// namespace whose capabilities do nothing.
func probeUserns() error {
	return runOrdinary("unshare", "--user", "--map-root-user", "--mount", "--net", "true")
}

// probeBubblewrap starts bwrap with the namespaces that a sandbox needs.
func probeBubblewrap() error {
	return runOrdinary("bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-all", "--", "true")
}

// runOrdinary runs a command under a uid that is not 0: for uid 0 other rules hold, and bubblewrap is no boundary.
func runOrdinary(name string, args ...string) error {
	path, err := findTool(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryID, Gid: ordinaryID}}
	}
	return runQuietly(cmd)
}

// probeTmpfsMount mounts in a mount namespace of the child: that takes the same capability as a mount in the host's,
// and the kernel removes it when the child ends.
func probeTmpfsMount() error {
	path, err := findTool("mount")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-t", "tmpfs", "-o", "size=64k", "tmpfs", os.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return runQuietly(cmd)
}

// probeLoopMount mounts an image in a mount namespace of the child; both are gone when the child ends, and the loop device
// with them.
func probeLoopMount() (err error) {
	path, err := findTool("mount")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "testenv-loop-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	image := dir + "/image"
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 2<<20)); err != nil {
		return err
	}
	if err := runTool("mkfs.ext4", "-q", "-F", image); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-o", "loop", image, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return runQuietly(cmd)
}

func probeLoop() error {
	f, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// probeReflink clones one file into another below the temporary directory, where tests make their trees.
func probeReflink() (err error) {
	dir, err := os.MkdirTemp("", "testenv-reflink-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.WriteFile("source", make([]byte, 4096), 0o600); err != nil {
		return err
	}
	source, err := root.Open("source")
	if err != nil {
		return err
	}
	defer source.Close()
	clone, err := root.Create("clone")
	if err != nil {
		return err
	}
	defer clone.Close()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, clone.Fd(), ficlone, source.Fd()); errno != 0 {
		return fmt.Errorf("FICLONE below %s: %w", os.TempDir(), errno)
	}
	return nil
}
