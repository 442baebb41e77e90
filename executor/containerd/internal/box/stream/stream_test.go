// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
	"github.com/evoseal/containment/internal/supervise"
)

// messages are one of each type with every field set, by kind.
func messages() map[stream.Kind]stream.Message {
	return map[stream.Kind]stream.Message{
		stream.KindOpen: &stream.Open{
			Version: 1, Idle: time.Second, Hard: -time.Hour, Dirs: []stream.Dir{{Path: "/a", Mode: 0o1777, Owned: true}},
			Volumes: []string{"/b"}, UID: 1, GID: 2,
		},
		stream.KindHello: &stream.Hello{
			Version: 1, PID: 2, UID: 3, GID: 4, Groups: "5", Inheritable: 6, Permitted: 7, Effective: 8, Bounding: 9, Ambient: 10,
			NoNewPrivs: true, Seccomp: 2, BootID: "b", Hostname: "h", OOMScoreAdj: -11,
			Mounts:  []stream.Mounted{{Target: "/", Type: "t", Options: "ro", Size: 12, Inodes: 13}},
			Rlimits: []supervise.Rlimit{{Resource: 1, Soft: 2, Hard: 3}}, Interfaces: []string{"lo"},
			Environment: 14, Threads: 15, Own: 16,
			UIDMap: "0 1 2", GIDMap: "0 3 4", Namespaces: []string{"net:[5]"},
		},
		stream.KindJob: &stream.Job{
			Nonce: [stream.NonceSize]byte{1, 15: 2}, Stage: supervise.Job{Programs: []string{"/p"}, Filter: []byte{1}, UID: -1},
			Trees: []stream.Tree{{Target: "/t", MaxBytes: 1, MaxFiles: 2}}, Root: "/r", Wall: 1, CPU: 2, Output: 3, Stdin: true,
			Patterns: []string{"**"}, ArtifactBytes: 4, ArtifactFiles: 5, Exclude: []string{"e"}, ExcludeNames: []string{"n"},
		},
		stream.KindRefused: &stream.Refused{Step: "s", Text: "t", Errno: 28},
		stream.KindResult: &stream.Result{
			Failed: supervise.Event{Kind: supervise.Failed, Step: supervise.StepExec, Errno: 2, Detail: 1},
			Leader: supervise.Event{Kind: supervise.Ended, Status: 9, User: 1, System: 2, MaxRSS: 3},
			Tree:   supervise.Event{Kind: supervise.Empty}, Killed: stream.KilledCPU, Wall: 4, CPU: 5, Tasks: 6, Threads: 9,
			Own:    10,
			Totals: [2]int64{7, 8}, Volumes: []stream.Volume{{Path: "/v", Size: 1, Used: 2, Inodes: 3, InodesUsed: 4, Full: 5}},
		},
	}
}

// empty returns a message of the kind, or nil if its records hold none.
func empty(k stream.Kind) stream.Message {
	switch k {
	case stream.KindOpen:
		return &stream.Open{}
	case stream.KindHello:
		return &stream.Hello{}
	case stream.KindJob:
		return &stream.Job{}
	case stream.KindRefused:
		return &stream.Refused{}
	case stream.KindResult:
		return &stream.Result{}
	}
	return nil
}

var ignore = []cmp.Option{
	cmpopts.EquateEmpty(), cmpopts.IgnoreFields(supervise.Event{}, "CPU", "Tasks"), cmpopts.IgnoreUnexported(supervise.Event{}),
}

func TestMessages(t *testing.T) {
	t.Parallel()
	for kind, want := range messages() {
		data := stream.Encode(want)
		got := empty(kind)
		if err := stream.Decode(data, got); err != nil {
			t.Fatalf("%T: %v", want, err)
		}
		if diff := cmp.Diff(want, got, ignore...); diff != "" {
			t.Errorf("%T (-want +got):\n%s", want, diff)
		}
		for n := range data {
			if err := stream.Decode(data[:n], empty(kind)); !errors.Is(err, stream.ErrProtocol) {
				t.Errorf("%T: the first %d of %d bytes: %v", want, n, len(data), err)
			}
		}
		if err := stream.Decode(append(data, 0), empty(kind)); !errors.Is(err, stream.ErrProtocol) {
			t.Errorf("%T: a byte too many: %v", want, err)
		}
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := stream.NewWriter(&b)
	large := bytes.Repeat([]byte{7}, stream.MaxRecord)
	job := bytes.Repeat([]byte{8}, stream.MaxRecord+1)
	for _, err := range []error{
		w.Queue(stream.KindStdout, []byte("a")), w.Queue(stream.KindStdinEnd, nil), w.Send(stream.KindTree, large),
		w.Queue(stream.KindJob, job), w.Flush(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := stream.NewReader(&b)
	for _, want := range []struct {
		kind stream.Kind
		data []byte
	}{{stream.KindStdout, []byte("a")}, {stream.KindStdinEnd, nil}, {stream.KindTree, large}, {stream.KindJob, job}} {
		kind, data, err := r.Next()
		if err != nil || kind != want.kind || !bytes.Equal(data, want.data) {
			t.Fatalf("kind %d, %d bytes, %v; want kind %d, %d bytes", kind, len(data), err, want.kind, len(want.data))
		}
	}
	if _, _, err := r.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestRecordsRefused(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"header cut":     "\x42\x00\x00",
		"data cut":       "\x44\x00\x00\x00\x05abc",
		"too long":       "\x44\x00\x01\x00\x01",
		"huge":           "\x44\xff\xff\xff\xff",
		"job too long":   "\x02\x00\x80\x00\x01",
		"started + data": "\x43\x00\x00\x00\x01x",
		"end too long":   "\x49\x00\x00\x00\x11aaaaaaaaaaaaaaaaa",
	} {
		_, _, err := stream.NewReader(bytes.NewReader([]byte(data))).Next()
		if !errors.Is(err, stream.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A length is no reason to allocate.
func TestNoAllocationByLength(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := stream.NewReader(bytes.NewReader([]byte("\x02\x00\x7f\xff\xff"))).Next() // a job of 8 MiB that never comes
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; err == nil || grown > 1<<20 {
		t.Errorf("%d bytes, %v", grown, err)
	}
}

// FuzzReader reads anything as records, and as the messages that they should hold. It is the code of both ends.
func FuzzReader(f *testing.F) {
	var all bytes.Buffer
	w := stream.NewWriter(&all)
	for kind, m := range messages() {
		if err := w.Send(kind, stream.Encode(m)); err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(all.Bytes()))
	}
	f.Add([]byte("\x44\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := stream.NewReader(bytes.NewReader(data))
		for {
			kind, body, err := r.Next()
			if err != nil {
				return
			}
			if len(body) > kind.Limit() {
				t.Fatalf("kind %d has %d bytes", kind, len(body))
			}
			m := empty(kind)
			if m == nil || stream.Decode(body, m) != nil {
				continue
			}
			again := empty(kind)
			if err := stream.Decode(stream.Encode(m), again); err != nil || !cmp.Equal(m, again, ignore...) {
				t.Fatalf("%+v became %+v, %v", m, again, err)
			}
		}
	})
}
