// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/executor/containerd"
)

func TestDaemon(t *testing.T) {
	t.Parallel()
	if fi, err := os.Stat(daemon(t).socket); err != nil || fi.Mode()&os.ModeSocket == 0 {
		t.Fatal(fi, err)
	}
	dir := shortDir(t)
	d := startDaemon(t, containerd.DaemonConfig{Dir: filepath.Join(dir, "second"), Path: *daemonPath}) // beside the first
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
