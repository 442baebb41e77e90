// SPDX-License-Identifier: Apache-2.0

package box_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
	"github.com/evoseal/containment/internal/supervise"
)

// fake is a box that says what a test wants, over pipes in memory.
type fake struct {
	*box.Session
	in  *stream.Reader
	out *stream.Writer
	raw io.WriteCloser
}

func newFake() *fake {
	toBoxR, toBoxW := io.Pipe()
	fromBoxR, fromBoxW := io.Pipe()
	return &fake{
		Session: box.NewSession(toBoxW, fromBoxR), in: stream.NewReader(toBoxR), out: stream.NewWriter(fromBoxW), raw: fromBoxW,
	}
}

// next reads one word of the host; what follows the end is not looked at.
func (f *fake) next(m stream.Message) {
	if _, data, err := f.in.Next(); err == nil && m != nil {
		_ = stream.Decode(data, m)
	}
}

// drain reads the host's words for ever.
func (f *fake) drain() {
	go func() {
		for {
			if _, _, err := f.in.Next(); err != nil {
				return
			}
		}
	}()
}

func (f *fake) send(k stream.Kind, m stream.Message) { _ = f.out.Send(k, stream.Encode(m)) }

// opened is a fake that is ready for a job.
func opened(t *testing.T) *fake {
	t.Helper()
	f := newFake()
	go func() {
		f.next(nil)
		f.send(stream.KindHello, &stream.Hello{Version: stream.Version})
	}()
	if _, err := f.Open(t.Context(), box.Open{Volumes: []string{"/v"}}); err != nil {
		t.Fatal(err)
	}
	return f
}

func fakeJob(t *testing.T) box.Job {
	return box.Job{
		Stage:     supervise.Job{Programs: []string{"/p"}, Args: []string{"p"}, Filter: []byte{1}},
		Limits:    executor.Limits{Output: 10, Wall: time.Second}.WithDefaults(),
		Artifacts: box.Artifacts{Patterns: []string{"out/*"}, Dest: filepath.Join(t.TempDir(), "dest"), ID: "x"},
	}
}

// good is a result that is believed.
func good() *stream.Result {
	return &stream.Result{
		Leader: supervise.Event{Kind: supervise.Ended}, Tree: supervise.Event{Kind: supervise.Empty}, Wall: time.Millisecond,
	}
}

// changed is good with a change.
func changed(f func(*stream.Result)) *stream.Result {
	r := good()
	f(r)
	return r
}

// lies are boxes that no supervisor is. Each is played after the job was read, whose nonce it is told.
var lies = map[string]func(f *fake, nonce []byte){
	"nothing":             func(*fake, []byte) {},
	"half a record":       func(f *fake, _ []byte) { _, _ = f.raw.Write([]byte{byte(stream.KindStarted), 0}) },
	"noise":               func(f *fake, _ []byte) { _, _ = f.raw.Write(bytes.Repeat([]byte{0xa5}, 1000)) },
	"end at once":         func(f *fake, n []byte) { _ = f.out.Send(stream.KindEnd, n) },
	"hello again":         func(f *fake, _ []byte) { f.send(stream.KindHello, &stream.Hello{}) },
	"host's word":         func(f *fake, _ []byte) { _ = f.out.Send(stream.KindExit, nil) },
	"output before start": func(f *fake, _ []byte) { _ = f.out.Send(stream.KindStdout, []byte("x")) },
	"credit unasked":      started(func(f *fake, _ []byte) { _ = f.out.Send(stream.KindCredit, nil) }),
	"started twice":       started(func(f *fake, _ []byte) { _ = f.out.Send(stream.KindStarted, nil) }),
	"refused and started": started(func(f *fake, n []byte) {
		f.send(stream.KindRefused, &stream.Refused{Step: "s"})
		_ = f.out.Send(stream.KindEnd, n)
	}),
	"too much output": started(func(f *fake, _ []byte) {
		_ = f.out.Send(stream.KindStdout, make([]byte, 8))
		_ = f.out.Send(stream.KindStdout, make([]byte, 4))
	}),
	"result before start":  finished(good(), false),
	"no leader":            result(func(r *stream.Result) { r.Leader.Kind = 0 }),
	"no proof":             result(func(r *stream.Result) { r.Tree.Kind = 0 }),
	"stopped":              result(func(r *stream.Result) { r.Leader.Status = 0x137f }),
	"unknown reason":       result(func(r *stream.Result) { r.Killed = 99 }),
	"cancelled by nobody":  result(func(r *stream.Result) { r.Killed = stream.KilledCancel }),
	"negative wall":        result(func(r *stream.Result) { r.Wall = -1 }),
	"negative share":       result(func(r *stream.Result) { r.Own = -1 }),
	"negative tasks":       result(func(r *stream.Result) { r.Tasks = -1 }),
	"output that came not": result(func(r *stream.Result) { r.Totals[0] = 5 }),
	"negative output":      result(func(r *stream.Result) { r.Totals[1] = -1 }),
	"foreign volume":       result(func(r *stream.Result) { r.Volumes = []stream.Volume{{Path: "/other"}} }),
	"negative volume":      result(func(r *stream.Result) { r.Volumes = []stream.Volume{{Path: "/v", Full: -1}} }),
	"failed after start":   result(func(r *stream.Result) { r.Failed = supervise.Event{Kind: supervise.Failed, Errno: 2} }),
	"failed without errno": finished(&stream.Result{Failed: supervise.Event{Kind: supervise.Failed}}, false),
	"no artifacts":         started(func(f *fake, n []byte) { f.send(stream.KindResult, good()); _ = f.out.Send(stream.KindEnd, n) }),
	"foreign nonce":        artifacts("z", make([]byte, stream.NonceSize)),
	"short nonce":          artifacts("z", []byte("short")),
	"undeclared artifact":  artifacts("a\x05other\x00ez", nil),
	"artifact outside":     artifacts("a\x0bout/../../x\x00ez", nil),
	"behind the artifacts": artifacts("zz", nil),
	"artifacts cut":        artifacts("a\x05out/x\x00", nil),
}

func started(then func(*fake, []byte)) func(*fake, []byte) {
	return func(f *fake, nonce []byte) {
		_ = f.out.Send(stream.KindStarted, nil)
		then(f, nonce)
	}
}

// finished sends a result and what belongs behind it.
func finished(r *stream.Result, start bool) func(*fake, []byte) {
	return func(f *fake, nonce []byte) {
		if start {
			_ = f.out.Send(stream.KindStarted, nil)
		}
		f.send(stream.KindResult, r)
		_ = f.out.Send(stream.KindArtifact, []byte("z"))
		_ = f.out.Send(stream.KindEnd, nonce)
	}
}

func result(change func(*stream.Result)) func(*fake, []byte) { return finished(changed(change), true) }

func artifacts(data string, nonce []byte) func(*fake, []byte) {
	return started(func(f *fake, n []byte) {
		f.send(stream.KindResult, good())
		_ = f.out.Send(stream.KindArtifact, []byte(data))
		if nonce == nil {
			nonce = n
		}
		_ = f.out.Send(stream.KindEnd, nonce)
	})
}

// play runs a job in a fake box.
func play(t *testing.T, job box.Job, act func(*fake, []byte)) (box.Ending, error) {
	t.Helper()
	f := opened(t)
	defer f.Close()
	go func() {
		var m stream.Job
		f.next(&m)
		f.drain()
		act(f, m.Nonce[:])
		_ = f.raw.Close()
	}()
	return f.Run(t.Context(), job)
}

func TestLyingBox(t *testing.T) {
	t.Parallel()
	if _, err := play(t, fakeJob(t), finished(good(), true)); err != nil {
		t.Fatalf("the honest box: %v", err)
	}
	for name, act := range lies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if end, err := play(t, fakeJob(t), act); !isLost(err) {
				t.Errorf("error %v, ending %+v", err, end)
			}
		})
	}
}

// A refusal is an error with the box's words, made fit to be printed.
func TestRefusalWords(t *testing.T) {
	t.Parallel()
	_, err := play(t, fakeJob(t), func(f *fake, n []byte) {
		f.send(stream.KindRefused, &stream.Refused{Step: "work\x1b[2J", Text: "no\n\xff", Errno: 28})
		_ = f.out.Send(stream.KindEnd, n)
	})
	e, ok := errors.AsType[*executor.SetupError](err)
	if !ok || e.Step != "work?[2J" || e.Err.Error() != "no?? (no space left on device)" {
		t.Errorf("error %q", err)
	}
}

// A box that says nothing more, in whatever phase, is given up in bounded time.
func TestSilentBox(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act    func(*fake)
		cancel bool
		within time.Duration
	}{
		"before the start": {func(*fake) {}, false, 6 * time.Minute},
		"while it runs":    {func(f *fake) { _ = f.out.Send(stream.KindStarted, nil) }, false, 12 * time.Second},
		"after a cancel":   {func(f *fake) { _ = f.out.Send(stream.KindStarted, nil) }, true, 11 * time.Second},
		"for the artifacts": {func(f *fake) {
			_ = f.out.Send(stream.KindStarted, nil)
			f.send(stream.KindResult, good())
		}, false, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := fakeJob(t)
			synctest.Test(t, func(t *testing.T) {
				f := opened(t)
				go func() {
					f.next(nil)
					f.drain()
					c.act(f)
				}()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel {
					time.AfterFunc(100*time.Millisecond, cancel)
				}
				begin := time.Now()
				_, err := f.Run(ctx, job)
				if took := time.Since(begin); !isLost(err) || took > c.within {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*fake){
		"ended":         func(f *fake) { _ = f.raw.Close() },
		"other version": func(f *fake) { f.send(stream.KindHello, &stream.Hello{Version: stream.Version + 1}) },
		"other word":    func(f *fake) { _ = f.out.Send(stream.KindStarted, nil) },
		"noise":         func(f *fake) { _, _ = f.raw.Write(bytes.Repeat([]byte{0xff}, 100)) },
	} {
		f := newFake()
		go func() {
			f.next(nil)
			act(f)
		}()
		if _, err := f.Open(t.Context(), box.Open{}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := f.Run(t.Context(), fakeJob(t)); err == nil {
			t.Errorf("%s: a job runs in a box that was not opened", name)
		}
		_ = f.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newFake().Open(ctx, box.Open{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// FuzzBox: whatever a box says, Run returns, and only an honest end is no error.
func FuzzBox(f *testing.F) {
	record := func(k stream.Kind, m stream.Message) []byte {
		var b bytes.Buffer
		w := stream.NewWriter(&b)
		data := []byte(nil)
		if m != nil {
			data = stream.Encode(m)
		}
		_ = w.Send(k, data)
		return b.Bytes()
	}
	start := record(stream.KindStarted, nil)
	f.Add(start)
	f.Add(append(bytes.Clone(start), record(stream.KindResult, good())...))
	f.Add(record(stream.KindRefused, &stream.Refused{Step: "a", Text: "b"}))
	f.Add(append(append(bytes.Clone(start), record(stream.KindResult, good())...), record(stream.KindEnd, nil)...))
	f.Add([]byte{byte(stream.KindStdout), 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		hello := record(stream.KindHello, &stream.Hello{Version: stream.Version})
		sink, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := box.NewSession(sink, io.NopCloser(io.MultiReader(bytes.NewReader(hello), bytes.NewReader(data))))
		defer s.Close()
		if _, err := s.Open(t.Context(), box.Open{}); err != nil {
			t.Fatal(err)
		}
		end, err := s.Run(t.Context(), fakeJob(t))
		if err == nil { // it would have to know the nonce
			t.Errorf("%+v", end)
		}
	})
}
