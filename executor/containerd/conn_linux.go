// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
)

// Deadlines of single questions to the daemon. Nothing here waits for ever: a daemon that hangs must not hang a
// caller.
const (
	dialTime   = 5 * time.Second  // until somebody who listens has said who it is
	askTime    = 10 * time.Second // a question that only the daemon's own data base answers
	createTime = 30 * time.Second // shim and runtime
	deleteTime = 10 * time.Second // one try of several
	deleteTry  = 3
	removeTime = 40 * time.Second // everything of one box
)

// conn is a connection to a daemon, in one namespace of it. It survives restarts of the daemon: nothing in it has a
// state of its own.
type conn struct {
	client  *containerd.Client
	ns      string
	address string
	version version
	uuid    string
	// sameFiles: the daemon runs in our own mount namespace, so that a path means the same file to both.
	sameFiles bool

	mu            sync.Mutex // guards what follows
	absent, asked time.Time  // since when nobody listens, and when that was asked last
}

// dial looks at the socket first: the client's own messages do not tell an absent daemon from a forbidden one.
func dial(ctx context.Context, address, ns string) (*conn, error) {
	if !filepath.IsAbs(address) {
		return nil, &DaemonError{Op: "connect", Reason: fmt.Sprintf("address %q is not absolute", address), Fix: "set Config.Address"}
	}
	if err := knock(address); err != nil {
		return nil, err
	}
	// A question that meets a daemon which is being started anew waits for it, as long as the question may take.
	client, err := containerd.New(address, containerd.WithTimeout(dialTime), containerd.WithCallOpts([]grpc.CallOption{grpc.WaitForReady(true)}))
	if err != nil {
		return nil, explain("connect", err)
	}
	c := &conn{client: client, ns: ns, address: address, sameFiles: sharesFiles(address)}
	if err := c.identify(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return c, nil
}

// knock tries to connect as the client would.
func knock(address string) error {
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

// sharesFiles asks the kernel who listens, and in which mount namespace that is. What cannot be seen is another one.
func sharesFiles(address string) bool {
	socket, err := net.DialTimeout("unix", address, dialTime)
	if err != nil {
		return false
	}
	defer socket.Close()
	raw, err := socket.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	pid := int32(0)
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = cred.Pid
		}
	})
	if err != nil || pid == 0 { // 0: a process of another pid namespace
		return false
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if err != nil {
		return false
	}
	ours, err := os.Readlink("/proc/self/ns/mnt")
	return err == nil && ours == theirs && sameRoot(pid)
}

// sameRoot compares the root directories: chroot changes them without a namespace.
func sameRoot(pid int32) bool {
	theirs, err := os.Stat(fmt.Sprintf("/proc/%d/root", pid))
	if err != nil {
		return false
	}
	ours, err := os.Stat("/")
	return err == nil && os.SameFile(ours, theirs)
}

// identify asks who answers.
func (c *conn) identify(ctx context.Context) error {
	ctx, cancel := c.within(ctx, dialTime)
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

func (c *conn) tasks() tasks.TasksClient     { return c.client.TaskService() }
func (c *conn) containers() containers.Store { return c.client.ContainerService() }

// close also removes the directory of runc's notes for the namespace, if nothing is in it: runc leaves it.
func (c *conn) close() error {
	if c.sameFiles {
		_ = os.Remove(filepath.Join(runcNotes, c.ns))
		c.forgetSandboxes()
	}
	return c.client.Close()
}

// again repeats a deletion. What is not there any more is deleted.
func (c *conn) again(ctx context.Context, op string, f func(context.Context) error) error {
	if err := c.present(ctx); err != nil {
		return explain(op, err)
	}
	var err error
	for try := range deleteTry {
		if try > 0 {
			time.Sleep(time.Duration(try*try) * 100 * time.Millisecond)
		}
		if err = c.once(ctx, f); err == nil || ctx.Err() != nil {
			break
		}
	}
	return explain(op, err)
}

// present waits a little for a daemon that is not there: one that is started anew is soon back, and for one that is
// gone nobody should wait as long as for one that thinks. All questions together wait once.
func (c *conn) present(ctx context.Context) error {
	const patience, pause = 3 * time.Second, 20 * time.Millisecond
	for {
		err := knock(c.address)
		if c.missed(err == nil) > patience || err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(pause)
	}
}

// missed notes whether somebody listens, and returns for how long nobody has. One absence that nobody has looked at
// for a while is another one by now.
func (c *conn) missed(there bool) time.Duration {
	const same = 10 * time.Second
	c.mu.Lock()
	defer c.mu.Unlock()
	if there {
		c.asked = time.Time{}
		return 0
	}
	now := time.Now()
	if now.Sub(c.asked) > same {
		c.absent = now
	}
	c.asked = now
	return now.Sub(c.absent)
}

func (c *conn) once(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := c.within(ctx, deleteTime)
	defer cancel()
	err := native(f(ctx))
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// apart gives clean-up a time of its own: the caller's end does not end it.
func apart(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), removeTime)
}

// exists reports whether the caller can see a file, for messages.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
