// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/evoseal/containment/rollback/internal/object"
)

func fakeFS(t testing.TB, s *Store, d fakeDir) fs.FS {
	t.Helper()
	fsys, err := s.FS(fakeCheckpoint(t, s, d).ID)
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

func TestFS(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	fsys := fakeFS(t, s, fakeSample())
	err := fstest.TestFS(fsys, "a", "empty", "none", "dir/b", "dir/sub/c", "link", "gone", "name\n")
	if err != nil {
		t.Error(err)
	}
	if err := fstest.TestFS(fakeFS(t, s, fakeDir{})); err != nil {
		t.Error(err)
	}
	if got, err := fs.ReadFile(fsys, "link"); err != nil || string(got) != "beta" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFSPaths(t *testing.T) {
	t.Parallel()
	fsys := fakeFS(t, fakeStore(t, t.TempDir(), nil), fakeDir{
		"d": fakeDir{"f": "1", "up": fakeLink("../g"), "out": fakeLink("../../g"), "dot": fakeLink("./f"), "self": fakeLink("self")},
		"g": "2", "to": fakeLink("d"), "bad\xff": "3", "abs": fakeLink("/g"), "file": fakeLink("g/x"),
	})
	for name, want := range map[string]any{
		"d/f": "1", "d/up": "2", "to/up": "2", "d/dot": "1", "to/f": "1",
		"d/out": fs.ErrNotExist, "abs": fs.ErrNotExist, "no": fs.ErrNotExist, "g/x": fs.ErrNotExist, "file": fs.ErrNotExist,
		"d/self": fs.ErrNotExist, "bad\xff": fs.ErrInvalid, "../g": fs.ErrInvalid, "/g": fs.ErrInvalid, "": fs.ErrInvalid, "d/": fs.ErrInvalid,
	} {
		got, err := fs.ReadFile(fsys, name)
		if text, ok := want.(string); ok && (err != nil || string(got) != text) {
			t.Errorf("%q: %q, %v", name, got, err)
		} else if target, ok := want.(error); ok && !errors.Is(err, target) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"abs", "d/out", "d/self", "file"} { // they lead nowhere
		if st, err := fs.Stat(fsys, name); err != nil || st.Mode().Type() != fs.ModeSymlink {
			t.Errorf("%s: %v, %v", name, st, err)
		}
		f, err := fsys.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := f.Read(make([]byte, 9)); n != 0 || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
	list, err := fs.ReadDir(fsys, ".")
	if err != nil || len(list) != 6 || list[1].Name() != "bad\xff" {
		t.Errorf("%v, %v", list, err)
	}
}

// TestFSLargeFile: chunks and holes, read in order, anywhere, and at the ends.
func TestFSLargeFile(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	want := make([]byte, 3*object.ChunkLen+7)
	copy(want[object.ChunkLen-4:], "12345678")
	copy(want[len(want)-3:], "end")
	var chunks []object.Chunk
	w := s.newWriter()
	for i := 0; i < len(want); i += object.ChunkLen {
		part := want[i:min(len(want), i+object.ChunkLen)]
		c := object.Chunk{Len: int64(len(part)), Hole: i == 2*object.ChunkLen}
		if !c.Hole {
			k, err := w.Add(object.Blob, part)
			if err != nil {
				t.Fatal(err)
			}
			c.Hash = k.Hash
		}
		chunks = append(chunks, c)
	}
	k, err := w.Add(object.Chunks, object.EncodeChunks(chunks))
	if err == nil {
		_, err = w.Seal(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	fsys := fakeFS(t, s, fakeDir{"big": object.Entry{Name: "big", Kind: object.File, Data: k, Size: int64(len(want))}})
	if err := s.Verify(t.Context(), ID{}); err != nil {
		t.Error(err)
	}
	got, err := fs.ReadFile(fsys, "big")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read as a whole: %v", err)
	}
	f, err := fsys.Open("big")
	if err != nil {
		t.Fatal(err)
	}
	at := f.(io.ReaderAt)
	for _, r := range [][2]int{{object.ChunkLen - 5, 20}, {2*object.ChunkLen - 1, 3}, {len(want) - 5, 5}, {3*object.ChunkLen - 1, 2}} {
		b := make([]byte, r[1])
		if n, err := at.ReadAt(b, int64(r[0])); n != len(b) || !bytes.Equal(b, want[r[0]:r[0]+r[1]]) {
			t.Errorf("%v: %d, %v", r, n, err)
		}
	}
	if n, err := at.ReadAt(make([]byte, 9), int64(len(want)-3)); n != 3 || err != io.EOF {
		t.Error(n, err)
	}
	if _, err := f.(io.Seeker).Seek(-3, io.SeekEnd); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(f); string(rest) != "end" {
		t.Errorf("%q, %v", rest, err)
	}
	for i := 0; i < 2; i++ {
		if err := f.Close(); (err == nil) != (i == 0) {
			t.Error(err)
		}
	}
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
}

func TestFSReader(t *testing.T) {
	t.Parallel()
	fsys := fakeFS(t, fakeStore(t, t.TempDir(), nil), fakeDir{"f": strings.Repeat("0123456789", 1000)})
	f, err := fsys.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(f, []byte(strings.Repeat("0123456789", 1000))); err != nil {
		t.Error(err)
	}
}

func TestFSDamage(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), &Options{Sync: SyncProcess, Codec: CodecNone})
	c := fakeCheckpoint(t, s, fakeDir{"f": "the bytes of f", "d": fakeDir{"only name here": ""}})
	fsys, err := s.FS(c.ID)
	if err != nil {
		t.Fatal(err)
	}
	damageText(t, s, "the bytes of f")
	damageText(t, s, "only name here")
	for _, name := range []string{"f", "d/only name here"} {
		var path *fs.PathError
		var corrupt *CorruptError
		_, err := fs.ReadFile(fsys, name)
		if !errors.As(err, &path) || !errors.As(err, &corrupt) || corrupt.ID != c.ID {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.FS(ID{}); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestFSModes(t *testing.T) {
	t.Parallel()
	e := object.Entry{Name: "f", Kind: object.File, Mode: 0o7751, Sec: -1, Nsec: 5, Data: object.Sum(object.Blob, nil)}
	fsys := fakeFS(t, fakeStore(t, t.TempDir(), nil), fakeDir{"f": e, "x": ""})
	st, err := fs.Stat(fsys, "f")
	want := fs.FileMode(0o751) | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	if err != nil || st.Mode() != want || st.ModTime().Unix() != -1 || st.ModTime().Nanosecond() != 5 {
		t.Errorf("%v, %v", st, err)
	}
}
