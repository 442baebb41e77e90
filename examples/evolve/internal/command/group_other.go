// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package command

import "os/exec"

// There are no process groups here: the program alone is killed.
func group(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
