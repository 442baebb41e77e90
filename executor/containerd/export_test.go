// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd

import (
	"context"
	"encoding/json"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
)

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

// PeerSpec is the OCI specification of the box of a run, with the run's program as process 1, for another client of the
// same daemon. The ids in it are taken until release is called.
func (e *Executor) PeerSpec(ctx context.Context, spec executor.Spec, id string) (
	text []byte, release func() error, err error,
) {
	r := e.newRun(spec)
	if r.want, err = e.look(spec); err != nil {
		return nil, nil, err
	}
	rules := box.Rules{MaxBytes: e.config.WorkspaceBytes, MaxFiles: e.config.WorkspaceFiles}
	if r.packed, err = box.Pack(ctx, e.dir(), spec.Workspace, rules); err != nil {
		return nil, nil, err
	}
	defer r.packed.Close()
	if err := r.makePlan(); err != nil {
		return nil, nil, err
	}
	slot, err := e.slots.take(ctx, e.destroyBox)
	if err != nil {
		return nil, nil, err
	}
	p := r.plan
	p.FirstID, p.Cgroup = e.slots.base(slot), e.cgroupPath(id)
	supervisor, err := e.supervisor.forSlot(p.FirstID)
	if err != nil {
		return nil, nil, err
	}
	p.Supervisor = e.see(supervisor)
	oci := p.spec()
	oci.Process.Args = spec.Args
	text, err = json.Marshal(oci)
	return text, slot.Release, err
}

// KillWaiting kills process 1 of the box that is handed out next, and lets the pool know of it only some time after the
// box was taken.
func (e *Executor) KillWaiting(ctx context.Context, late time.Duration) error {
	for {
		e.pool.mu.Lock()
		if len(e.pool.ready) > 0 {
			break
		}
		e.pool.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	defer e.pool.mu.Unlock()
	c := e.pool.ready[0]
	if err := e.conn.killTask(ctx, c.id); err != nil {
		return err
	}
	<-c.exited
	exited := make(chan struct{})
	c.exited = exited
	time.AfterFunc(late, func() { close(exited) })
	return nil
}
