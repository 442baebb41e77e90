// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
	"github.com/evoseal/containment/executor/internal/artifact"
	"github.com/evoseal/containment/internal/scratch"
	"github.com/evoseal/containment/internal/supervise"
)

// artifactTime bounds the search for artifacts. The host has a deadline of its own.
const artifactTime = time.Minute

// refusal is a failed step of the set-up.
type refusal struct {
	step string
	err  error
}

func (r *refusal) Error() string { return r.step + ": " + r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// errCancelled: the host wants no more, before the payload was started.
var errCancelled = errors.New("cancelled")

// run takes a job from its trees to its end. It returns only an error: when the host lets go the process ends.
func (s *supervisor) run(job *stream.Job) error {
	r := &run{supervisor: s, job: job}
	err := r.execute()
	if why, ok := errors.AsType[*refusal](err); ok {
		err = s.refuse(why)
	}
	if err != nil {
		return err
	}
	if err := s.out.Send(stream.KindEnd, job.Nonce[:]); err != nil {
		return err
	}
	r.listen()
	select {}
}

// refuse tells the host why nothing was started.
func (s *supervisor) refuse(why *refusal) error {
	text := why.err.Error()
	m := stream.Refused{Step: why.step, Text: text[:min(len(text), 4<<10)]}
	if errno, ok := errors.AsType[unix.Errno](why.err); ok {
		m.Errno = uint32(errno)
	}
	return s.out.Queue(stream.KindRefused, stream.Encode(&m))
}

// run is the state of one job.
type run struct {
	*supervisor
	job   *stream.Job
	root  *os.File // opened before the payload can change its mode
	hears bool     // somebody reads what the host says

	stdio
	watching
}

func (r *run) execute() error {
	if err := r.check(); err != nil {
		return &refusal{"job", err}
	}
	if err := r.unpack(); err != nil {
		return err
	}
	if err := r.openRoot(); err != nil {
		return &refusal{"directory", err}
	}
	defer r.root.Close()
	if err := r.openStdio(); err != nil {
		return &refusal{"streams", err}
	}
	r.job.Stage.UID, r.job.Stage.GID = r.open.UID, r.open.GID
	start := time.Now() // before the payload's: it runs at once, and this process may get its turn much later
	pid, failed, err := supervise.StartChild(r.job.Stage, r.payload[0], r.payload[1], r.payload[2])
	if err != nil {
		return &refusal{"guard", err}
	}
	if failed != nil {
		return r.out.Queue(stream.KindResult, stream.Encode(&stream.Result{Failed: *failed}))
	}
	r.started(pid, start)
	if err := r.out.Send(stream.KindStarted, nil); err != nil {
		return err
	}
	r.closePayload()
	r.pump()
	r.listen()
	if err := r.watch(); err != nil {
		return err
	}
	r.drained()
	if err := r.out.Queue(stream.KindResult, stream.Encode(r.result())); err != nil {
		return err
	}
	return r.artifacts()
}

// check refuses what would not be a bounded run.
func (r *run) check() error {
	j := r.job
	switch {
	case j.Nonce == [stream.NonceSize]byte{}:
		return errors.New("no nonce")
	case len(j.Stage.Filter) == 0:
		return errors.New("no filter of system calls")
	case j.Wall <= 0 || j.CPU <= 0 || j.Output <= 0:
		return errors.New("wall time, CPU time and output must be limited")
	case r.open.UID <= 0 || r.open.GID <= 0:
		return errors.New("the payload must not be root")
	case len(j.Stage.Args) == 0 || len(j.Stage.Programs) == 0:
		return errors.New("no program")
	}
	return nil
}

// unpack makes the trees that the host sends.
func (r *run) unpack() error {
	for _, t := range r.job.Trees {
		err := r.unpackOne(t)
		switch {
		case errors.Is(err, errCancelled):
			return &refusal{"cancelled", err}
		case err == nil:
		case errors.Is(err, stream.ErrProtocol), errors.Is(err, io.EOF):
			return err
		default:
			return &refusal{"workspace", err}
		}
	}
	return nil
}

func (r *run) unpackOne(t stream.Tree) error {
	dir, err := os.OpenFile(t.Target, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	in := &treeReader{in: r.in}
	err = scratch.Unpack(in, dir, scratch.UnpackOptions{
		Owner: scratch.Owner{UID: r.open.UID, GID: r.open.GID}, MaxBytes: t.MaxBytes, MaxFiles: t.MaxFiles,
	})
	switch {
	case in.err != nil:
		return in.err
	case err == nil && len(in.data) > 0:
		return fmt.Errorf("%w: %d bytes behind a tree", stream.ErrProtocol, len(in.data))
	}
	return err
}

// treeReader is the data of records of a tree in a row.
type treeReader struct {
	in   *stream.Reader
	data []byte
	err  error
}

func (t *treeReader) fill() error {
	for len(t.data) == 0 && t.err == nil {
		kind, data, err := t.in.Next()
		switch {
		case err != nil:
			t.err = err
		case kind == stream.KindCancel:
			t.err = errCancelled
		case kind != stream.KindTree:
			t.err = fmt.Errorf("%w: kind %d in a tree", stream.ErrProtocol, kind)
		}
		t.data = data
	}
	return t.err
}

func (t *treeReader) Read(p []byte) (int, error) {
	if err := t.fill(); err != nil {
		return 0, err
	}
	n := copy(p, t.data)
	t.data = t.data[n:]
	return n, nil
}

func (t *treeReader) ReadByte() (byte, error) {
	if err := t.fill(); err != nil {
		return 0, err
	}
	b := t.data[0]
	t.data = t.data[1:]
	return b, nil
}

// openRoot opens the workspace and refuses a working directory that is not in it. No payload runs yet, so the answer stays
// true.
func (r *run) openRoot() error {
	rel, ok := strings.CutPrefix(r.job.Stage.Dir, r.job.Root)
	if !ok || rel != "" && rel[0] != '/' {
		return fmt.Errorf("%q does not lie in %q", r.job.Stage.Dir, r.job.Root)
	}
	root, err := os.OpenFile(r.job.Root, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	r.root = root
	if rel = strings.Trim(rel, "/"); rel == "" {
		return nil
	}
	how := unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := unix.Openat2(int(root.Fd()), rel, &how)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.ENOSYS): // as in an older gVisor
		err = leadsInside(r.job.Root, r.job.Stage.Dir)
	}
	if err != nil {
		root.Close()
		return fmt.Errorf("%q is no visible directory of the workspace: %w", rel, err)
	}
	return nil
}

// leadsInside is the same question without openat2. Nobody is there who could change the answer.
func leadsInside(root, dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if rest, ok := strings.CutPrefix(real, root); !ok || rest != "" && rest[0] != '/' {
		return unix.EXDEV
	}
	if fi, err := os.Stat(real); err != nil || !fi.IsDir() {
		return errors.Join(err, unix.ENOTDIR)
	}
	return nil
}

// artifacts sends what was declared, now that nothing is alive.
func (r *run) artifacts() error {
	if len(r.job.Patterns) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), artifactTime)
	defer cancel()
	return artifact.Send(ctx, artifact.Request{
		Root: r.root, Alone: true, Patterns: r.job.Patterns, Exclude: r.job.Exclude, ExcludeNames: r.job.ExcludeNames,
		MaxBytes: r.job.ArtifactBytes, MaxFiles: r.job.ArtifactFiles,
	}, artifactWriter{r.out})
}

// artifactWriter makes records of what is written.
type artifactWriter struct{ out *stream.Writer }

func (w artifactWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), stream.MaxRecord)
		if err := w.out.Queue(stream.KindArtifact, rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(p), nil
}
