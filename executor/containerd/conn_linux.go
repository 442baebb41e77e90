// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc/status"
)

// Deadlines of single questions to the daemon. Nothing here waits for ever: a daemon that hangs must not hang a caller.
const (
	dialTime   = 5 * time.Second
	askTime    = 10 * time.Second // a question that only the daemon's own data base answers
	createTime = 30 * time.Second // shim and runtime
	deleteTime = 10 * time.Second // one try of several
	deleteTry  = 3
)

// conn is a connection to a daemon, in one namespace of it. It survives restarts of the daemon: nothing in it has a state
// of its own.
type conn struct {
	client  *containerd.Client
	ns      string
	address string
	version version
	uuid    string
}

// dial looks at the socket first: the client's own messages do not tell an absent daemon from a forbidden one.
func dial(ctx context.Context, address, ns string) (*conn, error) {
	if !filepath.IsAbs(address) {
		return nil, &DaemonError{Op: "connect", Reason: fmt.Sprintf("address %q is not absolute", address), Fix: "set Config.Address"}
	}
	if err := knock(ctx, address); err != nil {
		return nil, err
	}
	client, err := containerd.New(address, containerd.WithTimeout(dialTime))
	if err != nil {
		return nil, explain("connect", err)
	}
	c := &conn{client: client, ns: ns, address: address}
	if err := c.identify(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return c, nil
}

// knock tries to connect as the client would.
func knock(ctx context.Context, address string) error {
	absent := "start containerd (the package containerd), set Config.Address or Config.Managed, or use StartDaemon"
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return &DaemonError{Op: "connect", Err: err}
	}
	defer func() { _ = syscall.Close(fd) }()
	err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: address})
	switch {
	case err == nil, errors.Is(err, syscall.EAGAIN): // a full queue is an answer as well
		return nil
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return &DaemonError{Op: "connect", Reason: "no daemon listens on " + address, Fix: absent, Err: err}
	case errors.Is(err, syscall.EINVAL):
		return &DaemonError{Op: "connect", Reason: "the path of the socket is too long: " + address, Fix: "use a shorter one", Err: err}
	}
	return explain("connect", &fs.PathError{Op: "connect", Path: address, Err: err})
}

// identify asks who answers.
func (c *conn) identify(ctx context.Context) error {
	ctx, cancel := c.within(ctx, askTime)
	defer cancel()
	v, err := c.client.Version(ctx)
	if err != nil {
		return explain("version", err)
	}
	got, ok := parseVersion(v.Version)
	if !ok || got.less(oldestDaemon) {
		return &DaemonError{
			Op: "version", Reason: fmt.Sprintf("the daemon has version %q, the oldest supported one is %v", v.Version, oldestDaemon),
			Fix: "install a newer containerd",
		}
	}
	c.version = got
	info, err := c.client.Server(ctx)
	if err != nil {
		return explain("server", err)
	}
	c.uuid = info.UUID
	return nil
}

// within adds our namespace and a deadline.
func (c *conn) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(namespaces.WithNamespace(ctx, c.ns), d)
}

// apart is within for clean-up: the caller's end does not end it.
func (c *conn) apart(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return c.within(context.WithoutCancel(ctx), d)
}

func (c *conn) tasks() tasks.TasksClient     { return c.client.TaskService() }
func (c *conn) containers() containers.Store { return c.client.ContainerService() }
func (c *conn) close() error                 { return c.client.Close() }

// again repeats a deletion. What is not there any more is deleted.
func (c *conn) again(ctx context.Context, op string, f func(context.Context) error) error {
	var err error
	for try := range deleteTry {
		if try > 0 {
			time.Sleep(time.Duration(try*try) * 100 * time.Millisecond)
		}
		if err = c.once(ctx, f); err == nil {
			return nil
		}
	}
	return explain(op, err)
}

func (c *conn) once(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := c.apart(ctx, deleteTime)
	defer cancel()
	err := native(f(ctx))
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// exists reports whether the caller can see a file, for messages.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// native turns an error of the wire into one of errdefs. The client does that already for some of its services, and a second
// time it would lose what it was.
func native(err error) error {
	if _, wire := status.FromError(err); err == nil || !wire {
		return err
	}
	return errgrpc.ToNative(err)
}
