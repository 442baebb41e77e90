// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

func newDir(t *testing.T) *Dir {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &Dir{Root: root, Durable: true}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	for _, text := range []string{"first", "", "the second is longer"} {
		if err := d.WriteFile("temp", "name", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := d.ReadFile("name", 100); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if st, err := d.Stat("name"); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
}

// TestWriteFileFails: whatever fails, the old file stays as it is (after the rename it may be the new one, but is whole),
// and nothing else is left.
func TestWriteFileFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, op := range []string{"create", "write", "sync", "rename", "syncdir"} {
		d := newDir(t)
		if err := d.WriteFile("temp", "name", []byte("old")); err != nil {
			t.Fatal(err)
		}
		d.Fail = func(o, _ string) error {
			if o == op {
				return broken
			}
			return nil
		}
		var path *fs.PathError
		if err := d.WriteFile("temp", "name", []byte("new")); !errors.Is(err, broken) || !errors.As(err, &path) || path.Op != op {
			t.Errorf("%s: %v", op, err)
		}
		d.Fail = nil
		want := "old"
		if op == "syncdir" {
			want = "new"
		}
		if got, err := d.ReadFile("name", 100); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", op, got, err)
		}
		if _, err := d.Stat("temp"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: temp is left, %v", op, err)
		}
	}
}

func TestReadFileRefuses(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	if err := errors.Join(d.WriteFile("temp", "long", make([]byte, 101)), d.Mkdir("dir"), d.Mkdir("dir")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"long", "dir"} {
		if _, err := d.ReadFile(name, 100); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.ReadFile("none", 100); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := errors.Join(d.Remove("none"), d.Remove("long")); err != nil {
		t.Error(err)
	}
}
