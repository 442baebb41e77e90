// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"os/exec"
	"syscall"
)

// group gives the program a process group of its own, which ends as a whole.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// killGroup ends what the program has left in its group. The number cannot have been given to others: a group lives as long
// as one of its members, and without any there is nothing to kill.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
