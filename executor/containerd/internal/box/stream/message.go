// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"time"

	"github.com/evoseal/containment/internal/supervise"
	"github.com/evoseal/containment/internal/wire"
)

// NonceSize is the number of bytes of a nonce.
const NonceSize = 16

// Message is one of the types below.
type Message interface{ Fields(wire.Coder) }

// Encode returns the bytes of a message.
func Encode(m Message) []byte {
	w := &wire.Writer{}
	m.Fields(w)
	return w.Bytes()
}

// Decode takes a message from data, all of it.
func Decode(data []byte, m Message) error {
	r := wire.NewReader(data)
	m.Fields(r)
	if err := r.Err(); err != nil {
		return fmt.Errorf("%w: %T: %w", ErrProtocol, m, err)
	}
	return nil
}

// Dir is a directory that the supervisor makes, if it is not there, and gives its mode and owner.
type Dir struct {
	Path  string // absolute
	Mode  uint32 // permission bits, and 0o1000 for sticky
	Owned bool   // it becomes the payload's; else it stays that of the box's root
}

// Open is the first word of the host. Zero deadlines take [DefaultIdle] and [DefaultHard].
type Open struct {
	Version int           // set by the session
	Idle    time.Duration // without a job the box ends itself after that
	Hard    time.Duration // after that the box ends itself whatever happens
	Dirs    []Dir         // made in their order
	Volumes []string      // mount points whose fill level is watched: every sized tmpfs that the payload can write
	UID     int           // of the payload
	GID     int
}

// What holds for a box whose host says nothing else, or nothing at all.
const (
	DefaultIdle = 10 * time.Second
	DefaultHard = 20 * time.Second
)

// Fields passes every field through a coder.
func (o *Open) Fields(c wire.Coder) {
	wire.Int(c, &o.Version)
	duration(c, &o.Idle)
	duration(c, &o.Hard)
	wire.Slice(c, &o.Dirs, func(d *Dir) {
		c.Text(&d.Path)
		mode := uint64(d.Mode)
		c.Word(&mode)
		d.Mode = uint32(mode)
		c.Flag(&d.Owned)
	})
	wire.Texts(c, &o.Volumes)
	wire.Int(c, &o.UID)
	wire.Int(c, &o.GID)
}

func duration(c wire.Coder, d *time.Duration) { c.Number((*int64)(d)) }

// Mounted is one mount in a box.
type Mounted struct {
	Target, Type, Options string
	Size, Inodes          int64 // of its file system; 0 if it has no such limit
}

// MaxListed bounds each list in a [Hello], so that it stays one record.
const MaxListed = 256

// Hello is what the supervisor found when it began, before it changed anything.
type Hello struct {
	Version              int
	PID, UID, GID        int
	Groups               string // as in /proc/self/status
	Inheritable          uint64 // capability sets
	Permitted            uint64
	Effective            uint64
	Bounding             uint64
	Ambient              uint64
	NoNewPrivs           bool
	Seccomp              int // 2: a filter
	BootID               string
	Hostname             string
	OOMScoreAdj          int
	Mounts               []Mounted
	Rlimits              []supervise.Rlimit
	Interfaces           []string      // of the network namespace
	UIDMap, GIDMap       string        // of the user namespace, one blank between two fields
	Namespaces           []string      // "net:[4026532000]"
	Environment, Threads int           // number of variables, and of threads of the supervisor
	Own                  time.Duration // CPU time of the supervisor itself until here
}

// Fields passes every field through a coder.
func (h *Hello) Fields(c wire.Coder) {
	for _, v := range []*int{&h.Version, &h.PID, &h.UID, &h.GID, &h.Seccomp, &h.OOMScoreAdj, &h.Environment, &h.Threads} {
		wire.Int(c, v)
	}
	for _, v := range []*uint64{&h.Inheritable, &h.Permitted, &h.Effective, &h.Bounding, &h.Ambient} {
		c.Word(v)
	}
	c.Flag(&h.NoNewPrivs)
	for _, v := range []*string{&h.Groups, &h.BootID, &h.Hostname, &h.UIDMap, &h.GIDMap} {
		c.Text(v)
	}
	wire.Slice(c, &h.Mounts, func(m *Mounted) {
		c.Text(&m.Target)
		c.Text(&m.Type)
		c.Text(&m.Options)
		c.Number(&m.Size)
		c.Number(&m.Inodes)
	})
	wire.Slice(c, &h.Rlimits, func(l *supervise.Rlimit) { l.Fields(c) })
	wire.Texts(c, &h.Interfaces)
	wire.Texts(c, &h.Namespaces)
	duration(c, &h.Own)
}

// Tree is a packed tree that follows a job.
type Tree struct {
	Target             string // an empty directory
	MaxBytes, MaxFiles int64
}

// Job is one run.
type Job struct {
	Nonce [NonceSize]byte
	Stage supervise.Job
	Trees []Tree
	// Root is the directory that the payload's working directory must lie in, links resolved, and from which artifacts are
	// taken.
	Root string

	Wall, CPU     time.Duration
	Output        int64 // bytes of each stream
	Stdin         bool  // records of stdin follow; else it is empty
	Patterns      []string
	ArtifactBytes int64
	ArtifactFiles int
	Exclude       []string
	ExcludeNames  []string
}

// Fields passes every field through a coder.
func (j *Job) Fields(c wire.Coder) {
	nonce(c, &j.Nonce)
	j.Stage.Fields(c)
	wire.Slice(c, &j.Trees, func(t *Tree) {
		c.Text(&t.Target)
		c.Number(&t.MaxBytes)
		c.Number(&t.MaxFiles)
	})
	c.Text(&j.Root)
	duration(c, &j.Wall)
	duration(c, &j.CPU)
	c.Number(&j.Output)
	c.Flag(&j.Stdin)
	wire.Texts(c, &j.Patterns)
	c.Number(&j.ArtifactBytes)
	wire.Int(c, &j.ArtifactFiles)
	wire.Texts(c, &j.Exclude)
	wire.Texts(c, &j.ExcludeNames)
}

func nonce(c wire.Coder, n *[NonceSize]byte) {
	s := string(n[:])
	if c.Text(&s); len(s) == NonceSize {
		*n = [NonceSize]byte([]byte(s))
	}
}

// Refused says why the payload was not started.
type Refused struct {
	Step  string // of the set-up
	Text  string
	Errno uint32 // 0: none
}

// Fields passes every field through a coder.
func (r *Refused) Fields(c wire.Coder) {
	c.Text(&r.Step)
	c.Text(&r.Text)
	errno := uint64(r.Errno)
	c.Word(&errno)
	r.Errno = uint32(errno)
}

// Killed says why the supervisor ended the payload.
type Killed int

// The reasons.
const (
	KilledNot Killed = iota // it ended by itself
	KilledWall
	KilledCPU
	KilledOutput
	KilledCancel
)

// Volume is the fill level of a mount point.
type Volume struct {
	Path                     string
	Size, Used               int64 // bytes, at the end
	Inodes, InodesUsed, Full int64 // Full: bytes or inodes in use when none was free; 0: never seen
}

// Result is how a payload ended. Nothing of it is alive.
type Result struct {
	Failed       supervise.Event // Kind Failed: it did not start; then nothing else is set
	Leader, Tree supervise.Event
	Killed       Killed
	Wall         time.Duration
	CPU          time.Duration // the most that was seen of the whole tree; 0: no look was taken
	Tasks        int           // the most that was seen
	Threads      int           // of the supervisor itself, at the end
	Own          time.Duration // CPU time of the supervisor itself since it began
	Totals       [2]int64      // bytes that the payload wrote to stdout and stderr
	Volumes      []Volume
}

// Fields passes every field through a coder.
func (r *Result) Fields(c wire.Coder) {
	for _, e := range []*supervise.Event{&r.Failed, &r.Leader, &r.Tree} {
		for _, v := range []*uint32{(*uint32)(&e.Kind), (*uint32)(&e.Step), &e.Errno, &e.Detail, &e.Status} {
			word := uint64(*v)
			c.Word(&word)
			*v = uint32(word)
		}
		for _, v := range []*int64{&e.User, &e.System, &e.MaxRSS} {
			c.Number(v)
		}
	}
	wire.Int(c, (*int)(&r.Killed))
	duration(c, &r.Wall)
	duration(c, &r.CPU)
	wire.Int(c, &r.Tasks)
	wire.Int(c, &r.Threads)
	duration(c, &r.Own)
	c.Number(&r.Totals[0])
	c.Number(&r.Totals[1])
	wire.Slice(c, &r.Volumes, func(v *Volume) {
		c.Text(&v.Path)
		for _, n := range []*int64{&v.Size, &v.Used, &v.Inodes, &v.InodesUsed, &v.Full} {
			c.Number(n)
		}
	})
}
