// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDaemon(t *testing.T) {
	socket := daemon(t)
	if fi, err := os.Stat(socket); err != nil || fi.Mode()&os.ModeSocket == 0 {
		t.Fatal(fi, err)
	}
	dir := shortDir(t)
	d := startDaemon(t, filepath.Join(dir, "second")) // beside the first
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
