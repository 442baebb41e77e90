// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package supervise

import "golang.org/x/sys/unix"

// vforkFlags make the child borrow the parent's memory until it executes its program: copying the page tables of a Go
// process, and throwing the copy away, costs more than the rest of a run's forks.
const vforkFlags = unix.CLONE_VM | unix.CLONE_VFORK

// vfork makes the clone or clone3 call nr and, in the child, calls payloadMain.
//
//go:noescape
func vfork(nr, a1, a2 uintptr) (pid, errno uintptr)

// payloadMain is called from assembly only, which tools do not read.
var _ = payloadMain
