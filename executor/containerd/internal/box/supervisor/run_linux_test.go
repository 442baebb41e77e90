// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
	"github.com/evoseal/containment/internal/supervise"
)

// The working directory lies in the workspace, whatever links there are, with openat2 and without.
func TestWorkingDirectory(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(top, "work")
	for _, dir := range []string{"a/b", "../work2"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"inside": "a/b", "outside": "..", "absolute": "/tmp", "beside": "../work2", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for dir, ok := range map[string]bool{
		"": true, "/": true, "/a": true, "/a/b/": true, "/inside": true, "/./a": true,
		"/outside": false, "/absolute": false, "/beside": false, "/loop": false, "/none": false, "/file": false, "2": false, "/../work2": false,
	} {
		r := &run{supervisor: &supervisor{}, job: &stream.Job{Root: root, Stage: supervise.Job{Dir: root + dir}}}
		err := r.openRoot()
		if (err == nil) != ok {
			t.Errorf("%q: %v", dir, err)
		}
		if err == nil {
			r.root.Close()
		}
		if err := leadsInside(root, root+dir); (err == nil) != ok {
			t.Errorf("%q without openat2: %v", dir, err)
		}
	}
}

// A job without bounds is none.
func TestCheckJob(t *testing.T) {
	t.Parallel()
	good := func() *run {
		return &run{supervisor: &supervisor{open: stream.Open{UID: 1, GID: 1}}, job: &stream.Job{
			Nonce: [stream.NonceSize]byte{1}, Wall: 1, CPU: 1, Output: 1,
			Stage: supervise.Job{Programs: []string{"/p"}, Args: []string{"p"}, Filter: []byte{1}},
		}}
	}
	if err := good().check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*run){
		"nonce":    func(r *run) { r.job.Nonce = [stream.NonceSize]byte{} },
		"filter":   func(r *run) { r.job.Stage.Filter = nil },
		"wall":     func(r *run) { r.job.Wall = 0 },
		"CPU":      func(r *run) { r.job.CPU = -1 },
		"output":   func(r *run) { r.job.Output = 0 },
		"root":     func(r *run) { r.open.UID = 0 },
		"group":    func(r *run) { r.open.GID = -1 },
		"program":  func(r *run) { r.job.Stage.Programs = nil },
		"argument": func(r *run) { r.job.Stage.Args = nil },
	} {
		r := good()
		if change(r); r.check() == nil {
			t.Errorf("a job without %s is taken", name)
		}
	}
}

func TestRefusalKeepsErrno(t *testing.T) {
	t.Parallel()
	if err := error(&refusal{"workspace", unix.ENOSPC}); !errors.Is(err, unix.ENOSPC) || err.Error() == "" {
		t.Errorf("%v", err)
	}
}
