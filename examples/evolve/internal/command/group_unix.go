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

// killGroup ends what the program has left in its group. As long as a member lives, the number belongs to the group; if
// there is none, it could in theory be given to others at once, but kernels hand numbers out in turn.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
