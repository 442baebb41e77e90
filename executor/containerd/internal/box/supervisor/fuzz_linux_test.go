// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
	"github.com/evoseal/containment/internal/supervise"
)

// word is one record.
func word(f *testing.F, k stream.Kind, m stream.Message) []byte {
	var b bytes.Buffer
	var data []byte
	if m != nil {
		data = stream.Encode(m)
	}
	if err := stream.NewWriter(&b).Send(k, data); err != nil {
		f.Fatal(err)
	}
	return b.Bytes()
}

// FuzzHost reads anything as the words of a host, up to where a payload would be started, and what comes behind: it ends,
// it makes nothing but what a tree may hold, and it starts nothing without limits and a filter.
func FuzzHost(f *testing.F) {
	job := &stream.Job{
		Nonce: [stream.NonceSize]byte{1}, Stage: supervise.Job{Programs: []string{"/p"}, Args: []string{"p"}, Filter: []byte{1}},
		Trees: []stream.Tree{{Target: "/t", MaxBytes: 100, MaxFiles: 10}}, Wall: 1, CPU: 1, Output: 1, Stdin: true,
	}
	open := word(f, stream.KindOpen, &stream.Open{Version: stream.Version, UID: 1, GID: 1})
	tree := []byte{byte(stream.KindTree), 0, 0, 0, 7, 'd', 1, 'x', 'u', 0xed, 3, 0}
	all := append(bytes.Clone(open), word(f, stream.KindJob, job)...)
	f.Add(all)
	f.Add(append(bytes.Clone(all), tree...))
	f.Add(append(append(bytes.Clone(all), tree...), 0, 'u', 0xed, 3, 0, 0))
	f.Add(append(bytes.Clone(all), word(f, stream.KindCancel, nil)...))
	f.Add(append(append(bytes.Clone(all), 3, 0, 0, 0, 4, 'u', 0xed, 3, 0), word(f, stream.KindExit, nil)...))
	f.Add(append(bytes.Clone(open), 2, 0, 0x7f, 0xff, 0xff))
	top := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		s := &supervisor{in: stream.NewReader(bytes.NewReader(data)), file: r}
		soon := time.Now().Add(time.Minute)
		var job stream.Job
		if s.read(soon, stream.KindOpen, &s.open) != nil || s.read(soon, stream.KindJob, &job) != nil {
			return
		}
		one := &run{supervisor: s, job: &job}
		if one.check() != nil {
			return
		}
		if len(job.Stage.Filter) == 0 || job.Wall <= 0 || job.Output <= 0 || s.open.UID <= 0 {
			t.Fatalf("%+v would run", job)
		}
		dir, err := os.MkdirTemp(top, "tree")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s.open.UID, s.open.GID = os.Geteuid(), os.Getegid()
		for i := range job.Trees {
			job.Trees[i] = stream.Tree{Target: dir, MaxBytes: 1000, MaxFiles: 10}
		}
		if err := one.unpack(); err == nil {
			one.cancel = make(chan struct{}, 1)
			feed := make(chan []byte, stream.InitialCredit)
			if err := one.hear(feed); err != io.EOF && !errors.Is(err, stream.ErrProtocol) {
				t.Errorf("the end: %v", err)
			}
		}
		entries := 0
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if entries++; err == nil && !d.IsDir() && !d.Type().IsRegular() && d.Type() != fs.ModeSymlink {
				t.Errorf("%v was made", d.Type())
			}
			return nil
		})
		if entries > 10*max(len(job.Trees), 1)+1 {
			t.Errorf("%d entries for %d trees", entries, len(job.Trees))
		}
	})
}
