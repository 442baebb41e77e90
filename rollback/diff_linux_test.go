// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/rollback/internal/object"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	h := object.Sum(object.Blob, nil)
	a := fakeCheckpoint(t, s, fakeDir{
		"same": "s", "file": "1", "gone": fakeDir{"x": "1", "y": fakeDir{}}, "becomes-dir": "f", "becomes-file": fakeDir{"z": "1"},
		"link": fakeLink("a"), "mode": object.Entry{Name: "mode", Kind: object.File, Mode: 0o600, Data: h}, "keep": fakeDir{"k": "1"},
	})
	b := fakeCheckpoint(t, s, fakeDir{
		"same": "s", "file": "2", "new": fakeDir{"n": "1"}, "becomes-dir": fakeDir{"f": "1"}, "becomes-file": "f",
		"link": fakeLink("b"), "mode": object.Entry{Name: "mode", Kind: object.File, Mode: 0o700, Data: h}, "keep": fakeDir{"k": "1"},
	})
	want := []Change{
		{"becomes-dir", Retype}, {"becomes-dir/f", Create}, {"becomes-file", Retype}, {"becomes-file/z", Remove}, {"file", Replace},
		{"gone", Remove}, {"gone/x", Remove}, {"gone/y", Remove}, {"link", Replace}, {"mode", Attributes}, {"new", Create}, {"new/n", Create},
	}
	got, err := s.Diff(t.Context(), a.ID, b.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	back, err := s.Diff(t.Context(), b.ID, a.ID)
	if err != nil || len(back) != len(want) {
		t.Errorf("%v, %v", back, err)
	}
	none, err := s.Diff(t.Context(), a.ID, a.ID)
	if err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
	for _, ids := range [][2]ID{{a.ID, {}}, {{}, a.ID}} {
		if _, err := s.Diff(t.Context(), ids[0], ids[1]); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
}

func TestDiffOfTheRoot(t *testing.T) {
	t.Parallel()
	s := fakeStore(t, t.TempDir(), nil)
	m := fakeManifest(t, s, fakeDir{"a": "1"})
	a := fakeSeal(t, s, m)
	m.Root.Mode = 0o700
	b := fakeSeal(t, s, m)
	got, err := s.Diff(t.Context(), a.ID, b.ID)
	if diff := cmp.Diff([]Change{{".", Attributes}}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestEntryOp(t *testing.T) {
	t.Parallel()
	base := object.Entry{Name: "f", Kind: object.File, Mode: 0o644, Sec: 1, Size: 1, Data: object.Sum(object.Blob, []byte("x"))}
	for name, c := range map[string]struct {
		change func(e *object.Entry)
		want   Op
	}{
		"nothing": {func(*object.Entry) {}, 0},
		"bytes":   {func(e *object.Entry) { e.Data.Hash[0]++ }, Replace},
		"kind":    {func(e *object.Entry) { e.Kind = object.Link }, Retype},
		"mode":    {func(e *object.Entry) { e.Mode = 0o600 }, Attributes},
		"uid":     {func(e *object.Entry) { e.UID = 1 }, Attributes},
		"gid":     {func(e *object.Entry) { e.GID = 1 }, Attributes},
		"sec":     {func(e *object.Entry) { e.Sec++ }, Attributes},
		"nsec":    {func(e *object.Entry) { e.Nsec++ }, Attributes},
		"group":   {func(e *object.Entry) { e.Group = "a" }, Attributes},
		"xattrs":  {func(e *object.Entry) { e.Xattrs = []object.Xattr{{Name: "user.a"}} }, Attributes},
	} {
		changed := base
		c.change(&changed)
		if got := sameEntry(&base, &changed); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
