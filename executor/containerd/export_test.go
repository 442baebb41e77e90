// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd

import "context"

// Kill kills the daemon as a crash would, and leaves everything else.
func (d *Daemon) Kill() {
	d.mu.Lock()
	cmd, done := d.cmd, d.done
	d.mu.Unlock()
	_ = cmd.Process.Kill()
	<-done
}

// Restart starts it again over what is there.
func (d *Daemon) Restart(ctx context.Context) error { return d.start(ctx) }
