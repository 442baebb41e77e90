// SPDX-License-Identifier: Apache-2.0

//go:debug containermaxprocs=0

// Containment-init is the supervisor of a box as a program of its own: process 1 of every container that executor/containerd
// starts, where Config.Supervisor names it. It holds nothing of the host program, and its runtime does not look for limits of
// processors, of which it uses one. Build it without cgo:
//
//	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' github.com/evoseal/containment/executor/containerd/cmd/containment-init
package main

import (
	"fmt"
	"os"

	_ "github.com/evoseal/containment/executor/containerd/internal/box/supervisor"
)

// main is not reached in a box: the supervisor has taken over before.
func main() {
	fmt.Fprintln(os.Stderr, "containment-init: this is process 1 of a container and does nothing elsewhere")
	os.Exit(2)
}
