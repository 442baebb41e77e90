// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/testenv"
)

func TestSealAndGet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := fakeStore(t, dir, &Options{}) // with all flushes
	m := fakeManifest(t, s, fakeSample())
	m.Meta = Meta{Label: "first", Values: map[string]string{"score": "1"}}
	first := fakeSeal(t, s, m)
	second := fakeCheckpoint(t, s, fakeSample())
	if second.Parent != first.ID || second.Seq <= first.Seq || second.Added != 0 || second.Digest != first.Digest {
		t.Errorf("%+v after %+v", second, first)
	}
	for _, s := range []*Store{s, fakeStore(t, dir, nil)} {
		for _, want := range []Checkpoint{first, second} {
			got, err := s.Get(t.Context(), want.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
		if err := s.Verify(t.Context(), ID{}); err != nil {
			t.Error(err)
		}
		if _, err := s.Get(t.Context(), ID{1}); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
	if first.Meta.Values["score"] != "1" || first.Files != 5 || first.Dirs != 3 || first.Links != 4 {
		t.Errorf("%+v", first)
	}
}

func TestNothingIsExecutableOrOpenToOthers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "deep", "store")
	s := fakeStore(t, dir, nil)
	c := fakeCheckpoint(t, s, fakeSample())
	if err := s.Pin(t.Context(), c.ID, "x"); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s: mode %v", p, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	made := func(t *testing.T, mode fs.FileMode) string {
		dir := filepath.Join(t.TempDir(), "s")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, c := range map[string]struct {
		dir  func(t *testing.T) string
		want error
	}{
		"no name": {func(*testing.T) string { return "" }, ErrTarget},
		"a link": {func(t *testing.T) string {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(made(t, 0o700), link); err != nil {
				t.Fatal(err)
			}
			return link
		}, ErrTarget},
		"a file": {func(t *testing.T) string {
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		}, ErrTarget},
		"a dangling link": {func(t *testing.T) string {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink("nowhere", link); err != nil {
				t.Fatal(err)
			}
			return link
		}, ErrTarget},
		"group can write":  {func(t *testing.T) string { return made(t, 0o770) }, ErrTarget},
		"others can write": {func(t *testing.T) string { return made(t, 0o702) }, ErrTarget},
		"not a store": {func(t *testing.T) string {
			dir := made(t, 0o700)
			if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		}, ErrCorrupt},
		"without its description": {func(t *testing.T) string {
			dir := made(t, 0o700)
			if err := fakeStore(t, dir, nil).dir.Remove(formatFile); err != nil {
				t.Fatal(err)
			}
			return dir
		}, ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(c.dir(t), nil)
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func TestOpenRefusesForeignOwner(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "root")
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, nil); !errors.Is(err, ErrTarget) {
		t.Error(err)
	}
}

// TestOpenThroughALink: a link above the store is no danger, since the store is held by a descriptor.
func TestOpenThroughALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "real"), 0o700), os.Symlink("real", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	a := fakeStore(t, filepath.Join(dir, "link", "s"), nil)
	b := fakeStore(t, filepath.Join(dir, "real", "s"), nil)
	if a.id != b.id || a.path != b.path {
		t.Errorf("%s and %s", a.path, b.path)
	}
}

func TestOpenRefusesOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"scrub": {Scrub: -1}, "workers": {Workers: -1}, "files": {Limits: Limits{Files: -1}}, "depth": {Limits: Limits{Depth: -1}},
		"sync": {Sync: 2}, "codec": {Codec: 2}, "mtime": {MTime: 2}, "foreign": {Foreign: 2}, "special": {Special: 2},
	} {
		if _, err := Open(filepath.Join(t.TempDir(), "s"), &o); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	open := func(dir string, key string) error {
		s, err := Open(dir, &Options{Sync: SyncProcess, Key: []byte(key)})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	keyed, plain := t.TempDir(), t.TempDir()
	for _, err := range []error{open(keyed, "k"), open(keyed, "k"), open(plain, "")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, err := range map[string]error{
		"another key": open(keyed, "x"), "key forgotten": open(keyed, ""), "key for a plain store": open(plain, "k"),
	} {
		if !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := filepath.Join(plain, formatFile)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for change, want := range map[[2]string]error{
		{`"version":1`, `"version":2`}:                ErrFormat,
		{`"version":1`, `"version":2,"new":true`}:     ErrFormat,
		{`"version":1`, `"version":0`}:                ErrCorrupt,
		{`"version":1`, `"version":1,"x":1`}:          ErrCorrupt,
		{`"version":1`, `"version":1,"version":1`}:    ErrCorrupt,
		{`"version":1`, `"Version":1`}:                ErrCorrupt,
		{`"sha256"`, `"md5"`}:                         ErrCorrupt,
		{`}`, "} "}:                                   ErrCorrupt,
		{`}`, "}{}"}:                                  ErrCorrupt,
		{`}`, ""}:                                     ErrCorrupt,
		{`{`, " {"}:                                   ErrCorrupt,
		{`"store":"`, `"store":"zz`}:                  ErrCorrupt,
		{`}`, "}" + strings.Repeat(" ", formatLimit)}: ErrCorrupt,
	} {
		if err := os.WriteFile(file, []byte(strings.Replace(string(good), change[0], change[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := open(plain, ""); !errors.Is(err, want) {
			t.Errorf("%q: %v", change, err)
		}
	}
}

func TestMeta(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range maxValues + 1 {
		many[fmt.Sprint(i)] = ""
	}
	for name, c := range map[string]struct {
		m    Meta
		want error
	}{
		"many values":     {Meta{Values: many}, ErrTooLarge},
		"many bytes":      {Meta{Label: strings.Repeat("x", maxMetaBytes+1)}, ErrTooLarge},
		"many in a value": {Meta{Values: map[string]string{"k": strings.Repeat("x", maxMetaBytes)}}, ErrTooLarge},
		"no text":         {Meta{Label: "\xff"}, fs.ErrInvalid},
		"no text value":   {Meta{Values: map[string]string{"k": "\xff"}}, fs.ErrInvalid},
		"fine":            {Meta{Label: "<ü>\x00\u2028", Values: map[string]string{"": ""}}, nil},
	} {
		s := fakeStore(t, t.TempDir(), nil)
		m := fakeManifest(t, s, fakeDir{})
		m.Meta = c.m
		if _, err := s.seal(t.Context(), m); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		for _, err := range s.All(t.Context()) {
			if err != nil || c.want != nil {
				t.Errorf("%s: a checkpoint, %v", name, err)
			}
		}
	}
}

// TestFullDisk: whichever operation fails, there is no checkpoint, the error says so, and the next call works.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	m := fakeManifest(t, s, fakeSample())
	for _, op := range []string{"create", "write", "sync", "rename"} {
		s.inject = func(o string) error {
			if o == op {
				return fmt.Errorf("full: %w", syscall.ENOSPC)
			}
			return nil
		}
		if _, err := s.seal(t.Context(), m); !errors.Is(err, ErrNoSpace) {
			t.Errorf("%s: %v", op, err)
		}
		if err := s.addLabel(t.Context(), label{Op: labelPin}); op != "create" && op != "rename" && !errors.Is(err, ErrNoSpace) {
			t.Errorf("%s: %v", op, err)
		}
		s.inject = nil
		st, err := s.Stats(t.Context())
		if err != nil || st.Checkpoints != 0 || len(storeFiles(t, s, s.tmp)) > 0 {
			t.Errorf("%s: %+v, %v", op, st, err)
		}
	}
	c := fakeSeal(t, s, m)
	if err := s.Verify(t.Context(), c.ID); err != nil {
		t.Error(err)
	}
}
