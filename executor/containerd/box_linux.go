// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/typeurl/v2"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
	"github.com/evoseal/containment/internal/lease"
)

// container is one box of ours, from its lease to its end. It serves one run.
type container struct {
	ex   *Executor
	id   string
	plan plan
	root rootfs

	lease    *lease.Lease
	slot     *lease.Slot
	snapshot bool
	record   bool // there is, or may be, a container
	task     bool // there is, or may be, a task
	doubtful bool // the daemon did not say that it made one
	streams  *streams
	session  *box.Session
	hello    box.Hello
	made     time.Time

	pid       uint32      // of process 1, as the daemon sees it
	group     groupLimits // as the kernel has them
	seesGroup bool
	before    time.Duration // CPU time until process 1 had said hello

	exited chan struct{} // closed when exit is known
	exit   exit
	unwait context.CancelFunc
}

// deadlines of a box that process 1 keeps by itself, so that a box ends whose host program was killed.
type deadlines struct{ idle, hard time.Duration }

// create makes a box up to the supervisor's first word. Whatever was made is removed if a step fails.
func (e *Executor) create(ctx context.Context, p plan, d deadlines, label string) (_ *container, err error) {
	c := &container{ex: e, id: lease.NewID(), plan: p, root: e.root, exited: make(chan struct{}), made: time.Now()}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"lease", func(ctx context.Context) error { return c.takeLease(ctx, label) }},
		{"streams", c.openStreams},
		{"root", c.prepareRoot},
		{"container", func(ctx context.Context) error { return c.createRecord(ctx, d, label) }},
		{"task", c.createTask},
		{"start", c.start},
		{"supervisor", func(ctx context.Context) error { return c.greet(ctx, d) }},
	} {
		if err := step.do(ctx); err != nil {
			err = &executor.SetupError{Step: step.name, Err: explain(step.name, err)}
			return nil, errors.Join(err, c.destroy(ctx))
		}
	}
	return c, nil
}

// takeLease reserves ids and writes down what is about to be made.
func (c *container) takeLease(ctx context.Context, label string) (err error) {
	dir := c.ex.boxDir(c.id)
	if c.slot, err = c.ex.slots.take(ctx, c.ex.destroyBox); err != nil {
		return err
	}
	if err := c.slot.Leave(dir); err != nil {
		return err
	}
	rec := lease.Record{ID: c.id, Label: label, Scratch: []string{dir}, UID: c.slot.UID}
	if c.lease, err = c.ex.boxLeases.Acquire(rec); err != nil {
		return err
	}
	c.plan.FirstID = c.ex.slots.base(c.slot)
	c.plan.Cgroup = c.ex.cgroupPath(c.id)
	supervisor, err := c.ex.supervisor.forSlot(c.plan.FirstID)
	c.plan.Supervisor = c.ex.see(supervisor)
	return err
}

func (c *container) openStreams(context.Context) (err error) {
	c.streams, err = openStreams(c.ex.boxDir(c.id))
	return err
}

// prepareRoot makes the snapshot, if the root is an image.
func (c *container) prepareRoot(ctx context.Context) error {
	if c.root.parent == "" {
		return nil
	}
	c.snapshot = true
	return c.ex.conn.prepareSnapshot(ctx, c.root, c.id, c.labels(deadlines{}, ""))
}

// The labels of what we make. Sweeps decide by them.
const (
	labelPrefix   = "evoseal.containment/"
	labelState    = labelPrefix + "state"    // id of the state directory in which the lease is
	labelOwner    = labelPrefix + "owner"    // id of the executor
	labelDeadline = labelPrefix + "deadline" // Unix time at which process 1 ends whatever happens
	labelText     = labelPrefix + "label"    // the caller's mark, for people
)

func (c *container) labels(d deadlines, label string) map[string]string {
	m := map[string]string{labelState: c.ex.stateID, labelOwner: c.ex.id}
	if d.hard > 0 {
		m[labelDeadline] = strconv.FormatInt(time.Now().Add(d.hard).Unix(), 10)
	}
	if label != "" {
		m[labelText] = label
	}
	return m
}

func (c *container) createRecord(ctx context.Context, d deadlines, label string) error {
	if err := c.ex.conn.present(ctx); err != nil {
		return err
	}
	spec, err := typeurl.MarshalAny(c.plan.spec())
	if err != nil {
		return err
	}
	record := containers.Container{
		ID: c.id, Labels: c.labels(d, label), Spec: spec,
		Runtime: containers.RuntimeInfo{Name: c.ex.config.Runtime.Name, Options: c.ex.options},
	}
	if c.snapshot {
		record.Snapshotter, record.SnapshotKey = c.root.snapshotter, c.id
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// As with a task: a daemon that goes on with what was cancelled might make the record after it was deleted.
	ctx, cancel := c.ex.conn.within(context.WithoutCancel(ctx), askTime)
	defer cancel()
	c.record = true
	_, err = c.ex.conn.containers().Create(ctx, record)
	return err
}

// createTask has shim and runtime make everything but the program. One that hangs is given up: gVisor's does, if it does
// not like its annotations.
func (c *container) createTask(ctx context.Context) error {
	mounts, err := c.ex.conn.rootMounts(ctx, c.root, c.id)
	if err != nil {
		return err
	}
	see := c.ex.see
	request := &tasks.CreateTaskRequest{
		ContainerID: c.id, Rootfs: mounts,
		Stdin: see(c.streams.path("stdin")), Stdout: see(c.streams.path("stdout")), Stderr: see(c.streams.path("stderr")),
	}
	// The caller's end does not interrupt this: the daemon would give the task up and might forget the shim.
	ctx, cancel := c.ex.conn.within(context.WithoutCancel(ctx), createTime)
	defer cancel()
	c.task, c.doubtful = true, true
	_, err = c.ex.conn.tasks().Create(ctx, request)
	c.doubtful = err != nil
	return native(err)
}

// start begins to wait first: an exit before that would not be seen.
func (c *container) start(ctx context.Context) error {
	c.streams.listen()
	c.session = box.NewSession(c.streams.stdin, c.streams.stdout)
	var waiting context.Context
	waiting, c.unwait = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(c.exited)
		c.exit = c.ex.conn.wait(waiting, c.id)
	}()
	ctx, cancel := c.ex.conn.within(ctx, createTime)
	defer cancel()
	started, err := c.ex.conn.tasks().Start(ctx, &tasks.StartRequest{ContainerID: c.id})
	if err != nil {
		return native(err)
	}
	c.pid = started.GetPid()
	// The shim has a writer of stdin as well, so that clients can come and go. Without it process 1 learns of our death: its
	// input ends, and it kills everything.
	_, err = c.ex.conn.tasks().CloseIO(ctx, &tasks.CloseIORequest{ContainerID: c.id, Stdin: true})
	return native(err)
}

// helloTime bounds the start of process 1.
const helloTime = 20 * time.Second

// greet waits for what process 1 found, and compares it with what was ordered: a box that is not what it should be is not
// used.
func (c *container) greet(ctx context.Context, d deadlines) (err error) {
	ctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	c.hello, err = c.session.Open(ctx, box.Open{Idle: d.idle, Hard: d.hard, Dirs: box.DefaultDirs(), Volumes: volumes})
	if err != nil {
		return fmt.Errorf("%w%s", err, c.lastWords())
	}
	if err := c.plan.check(c.hello); err != nil {
		return err
	}
	return c.readBack(ctx)
}

// lastWords are what process 1, or what was to start it, wrote to stderr.
func (c *container) lastWords() string {
	select {
	case <-c.exited:
	case <-time.After(50 * time.Millisecond):
		return ""
	}
	text := fmt.Sprintf(" (process 1 ended with status %d", c.exit.status)
	select {
	case words := <-c.streams.words:
		text += fmt.Sprintf(": %.500q", words)
	case <-time.After(50 * time.Millisecond):
	}
	return text + ")"
}

// volumes are the places that a run can write to.
var volumes = []string{box.Mount, "/tmp", "/dev/shm"}

// running reports whether process 1 is not known to have ended.
func (c *container) running() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// endTime bounds the wait for a process 1 that was told to end.
const endTime = 2 * time.Second

// destroy removes everything. It goes on over failures and names what remains; the lease then stays, for a sweep.
func (c *container) destroy(ctx context.Context) error {
	ctx, cancel := apart(ctx)
	defer cancel()
	var remains []error
	note := func(err error) {
		if err != nil {
			remains = append(remains, err)
		}
	}
	conn := c.ex.conn
	if c.task {
		note(c.end(ctx))
		note(conn.deleteTask(ctx, c.id))
		if c.doubtful {
			note(c.ex.forceAway(ctx, c.id))
		}
	}
	if c.unwait != nil {
		c.unwait()
	}
	if c.record {
		note(conn.deleteContainer(ctx, c.id))
	}
	if c.snapshot {
		note(conn.removeSnapshot(ctx, c.root, c.id))
	}
	if c.session != nil {
		_ = c.session.Close()
	}
	if c.streams != nil {
		note(c.streams.close())
	} else if c.lease != nil {
		note(os.RemoveAll(c.ex.boxDir(c.id)))
	}
	note(c.release(len(remains) == 0))
	if len(remains) == 0 {
		return nil
	}
	return &executor.CleanupError{Remains: remains}
}

// dead ends process 1, and reports whether the daemon has seen its end: then nothing of the box is alive.
func (c *container) dead(ctx context.Context) bool {
	ctx, cancel := apart(ctx)
	defer cancel()
	return c.end(ctx) == nil && !c.running() && c.exit.err == nil
}

// end lets process 1 end by itself, which is quicker than a kill, and kills it if it does not.
func (c *container) end(ctx context.Context) error {
	if c.streams != nil { // a process 1 that reads nothing must not hold us
		_ = c.streams.stdin.SetWriteDeadline(time.Now().Add(endTime))
	}
	if c.session != nil && c.session.Exit() == nil {
		select {
		case <-c.exited:
			if c.exit.err == nil {
				return nil
			}
		case <-time.After(endTime):
		}
	}
	return c.ex.conn.killTask(ctx, c.id)
}

// release gives the ids and the lease back, if nothing is left.
func (c *container) release(clean bool) error {
	var errs []error
	if c.slot != nil {
		if clean {
			errs = append(errs, c.slot.Release())
		} else {
			errs = append(errs, c.slot.Abandon())
		}
	}
	switch {
	case c.lease == nil:
	case clean:
		errs = append(errs, c.lease.Release())
	default: // a sweep of ours or of a neighbour tries again while this process lives
		errs = append(errs, c.lease.Abandon())
	}
	return errors.Join(errs...)
}
