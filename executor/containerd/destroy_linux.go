// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"
)

// list returns the containers of the namespace.
func (c *conn) list(ctx context.Context, filters ...string) ([]containers.Container, error) {
	ctx, cancel := c.within(ctx, askTime)
	defer cancel()
	list, err := c.containers().List(ctx, filters...)
	return list, explain("list containers", err)
}

// destroy removes the task and the container, whatever state they are in. It goes on over failures.
func (c *conn) destroy(ctx context.Context, id string) error {
	return errors.Join(c.killTask(ctx, id), c.deleteTask(ctx, id), c.deleteContainer(ctx, id))
}

// killTask kills every process of a box and waits until the daemon has seen the end of process 1.
func (c *conn) killTask(ctx context.Context, id string) error {
	return c.again(ctx, "kill "+id, func(ctx context.Context) error {
		_, err := c.tasks().Kill(ctx, &tasks.KillRequest{ContainerID: id, Signal: uint32(syscall.SIGKILL), All: true})
		if err := native(err); err != nil && !errdefs.IsFailedPrecondition(err) {
			return err // NotFound: the task is gone, or its process ended by itself
		}
		_, err = c.tasks().Wait(ctx, &tasks.WaitRequest{ContainerID: id})
		return err
	})
}

func (c *conn) deleteTask(ctx context.Context, id string) error {
	return c.again(ctx, "delete task "+id, func(ctx context.Context) error {
		_, err := c.tasks().Delete(ctx, &tasks.DeleteTaskRequest{ContainerID: id})
		return err
	})
}

func (c *conn) deleteContainer(ctx context.Context, id string) error {
	return c.again(ctx, "delete container "+id, func(ctx context.Context) error {
		return c.containers().Delete(ctx, id)
	})
}

// exit is how process 1 of a box ended, as the daemon tells it. It is never the payload's result.
type exit struct {
	status uint32
	err    error
}

// wait returns when the daemon has seen the end of a box, or ctx is done. A daemon that is started anew in between is asked
// again: boxes outlive it.
func (c *conn) wait(ctx context.Context, id string) exit {
	for {
		r, err := c.waitOnce(ctx, id)
		err = native(err)
		switch {
		case err == nil:
			return exit{status: r.GetExitStatus()}
		case ctx.Err() != nil:
			return exit{err: fmt.Errorf("wait for %s: %w", id, context.Cause(ctx))}
		case !errdefs.IsUnavailable(err) && !errdefs.IsDeadlineExceeded(err) && !errdefs.IsUnknown(err) && !errdefs.IsCanceled(err):
			return exit{err: explain("wait for "+id, err)}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// longest is longer than any run: the deadline is the caller's.
const longest = 365 * 24 * time.Hour

func (c *conn) waitOnce(ctx context.Context, id string) (*tasks.WaitResponse, error) {
	ctx, cancel := c.within(ctx, longest)
	defer cancel()
	return c.tasks().Wait(ctx, &tasks.WaitRequest{ContainerID: id})
}
