// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package containerd_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
)

// exit7 is a whole static program: one segment with exit(7).
func exit7() []byte {
	code := []byte{0xbf, 7, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05} // mov edi, 7; mov eax, 60; syscall
	const base, headers = 0x400000, 64 + 56
	var b bytes.Buffer
	b.Write([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	for _, v := range []any{
		uint16(2), uint16(62), uint32(1), uint64(base + headers), uint64(64), uint64(0), uint32(0), // EXEC, x86-64
		uint16(64), uint16(56), uint16(1), uint16(64), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), // LOAD, readable and executable
		uint64(headers + len(code)), uint64(headers + len(code)), uint64(0x1000),
	} {
		_ = binary.Write(&b, binary.LittleEndian, v)
	}
	b.Write(code)
	return b.Bytes()
}

// file is one entry of an archive. A symbolic link has its target as data.
type file struct {
	name string
	mode int64
	data []byte
}

func tarOf(t *testing.T, files []file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode & 0o7777, Size: int64(len(f.data)), Typeflag: tar.TypeReg}
		switch {
		case strings.HasSuffix(f.name, "/"):
			h.Typeflag = tar.TypeDir
		case fs.FileMode(f.mode)&fs.ModeSymlink != 0:
			h.Typeflag, h.Linkname, h.Size, f.data = tar.TypeSymlink, string(f.data), 0, nil
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// archive writes an OCI image of one layer to a file. Its configuration names what must not come into a box.
func archive(t *testing.T, files []file, env ...string) string {
	t.Helper()
	blobs := map[string][]byte{}
	add := func(data []byte) map[string]any {
		digest := fmt.Sprintf("%x", sha256.Sum256(data))
		blobs[digest] = data
		return map[string]any{"digest": "sha256:" + digest, "size": len(data)}
	}
	text := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	typed := func(kind string, m map[string]any) map[string]any {
		m["mediaType"] = "application/vnd.oci.image." + kind
		return m
	}
	layer := typed("layer.v1.tar", add(tarOf(t, files)))
	config := typed("config.v1+json", add(text(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Env": append(env, "IMAGE_SECRET=1"), "User": "0", "WorkingDir": "/proc/self/fd/7",
			"Entrypoint": []string{"/bin/seven"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []any{layer["digest"]}},
	})))
	manifest := typed("manifest.v1+json", add(text(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
		"layers": []any{layer},
	})))
	all := []file{
		{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", 0o644, text(map[string]any{"schemaVersion": 2, "manifests": []any{manifest}})},
		{"blobs/", 0o755, nil}, {"blobs/sha256/", 0o755, nil},
	}
	for digest, data := range blobs {
		all = append(all, file{"blobs/sha256/" + digest, 0o644, data})
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(path, tarOf(t, all), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// runSeven runs the program of the root, and looks at what else a run sees.
func runSeven(t *testing.T, ex *containerd.Executor, identity string) {
	t.Helper()
	for args0, want := range map[string]struct {
		cause executor.Cause
		code  int
	}{
		"/bin/seven": {executor.CauseExited, 7}, "seven": {executor.CauseExited, 7},
		"/bin/true":                      {executor.CauseNotFound, -1},
		"/.containment/containment-init": {executor.CauseNotFound, -1}, // it is there, and not for the payload
	} {
		result, err := ex.Run(t.Context(), executor.Spec{Args: []string{args0}, Workspace: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if result.Cause != want.cause || result.ExitCode != want.code {
			t.Errorf("%s: %v, %d, %s", args0, result.Cause, result.ExitCode, result.Detail)
		}
	}
	if !ex.Capabilities().Has(executor.MinimalRoot) {
		t.Errorf("capabilities %v", ex.Capabilities())
	}
	if !strings.Contains(ex.Fingerprint(), identity) {
		t.Errorf("%q is not in the fingerprint %s", identity, ex.Fingerprint())
	}
}

func TestArchiveRoot(t *testing.T) {
	t.Parallel()
	at := daemon(t)
	path := archive(t, []file{{"bin/", 0o755, nil}, {"bin/seven", 0o4755, exit7()}})
	for range 2 { // the second time it is there already
		ex := at.open(t, containerd.Config{Root: containerd.Root{Archive: path}})
		runSeven(t, ex, "sha256:")
		if err := ex.Close(); err != nil {
			t.Error(err)
		}
	}
	if found := census(t, at); len(found) > 0 {
		t.Errorf("left behind: %q", found)
	}
}

func TestDirectoryRoot(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(shortDir(t), "root")
	for _, d := range []string{"proc", "dev", "run", "tmp", "box", ".containment", "bin"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "seven"), exit7(), 0o755); err != nil {
		t.Fatal(err)
	}
	runSeven(t, daemon(t).open(t, containerd.Config{Root: containerd.Root{Directory: dir}}), dir)
}
