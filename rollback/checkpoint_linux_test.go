// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback/internal/object"
)

var fakeManifestRoot = object.Entry{Kind: object.Dir, Sec: 1}

func TestCheckpointOfNothingNew(t *testing.T) {
	t.Parallel()
	_, tree, s := treeAndStore(t, nil)
	first, err := s.Checkpoint(t.Context(), tree, Meta{Label: "one"})
	check(t, err)
	second, err := s.Checkpoint(t.Context(), tree, Meta{Label: "two"})
	check(t, err)
	if second.ID == first.ID || second.Parent != first.ID || second.Digest != first.Digest ||
		second.Added != 0 || first.Added == 0 {
		t.Errorf("%+v after %+v", second, first)
	}
	if first.Files != 1 || first.Dirs != 2 || first.Bytes != 7 || first.Kind != User || first.Tree != tree {
		t.Errorf("%+v", first)
	}
	digest, err := s.Digest(t.Context(), tree)
	if err != nil || digest != first.Digest {
		t.Errorf("the digest is %x, %v", digest, err)
	}
	check(t, s.Verify(t.Context(), ID{}))
}

// TestPresence: what the cache knows and the packs have lost is stored again.
func TestPresence(t *testing.T) {
	t.Parallel()
	base, tree, s := treeAndStore(t, nil)
	big, err := os.Create(tree + "/big")
	check(t, err)
	_, err = big.WriteAt([]byte("x"), 20<<20)
	check(t, err)
	check(t, big.Close())
	for range 2 {
		_, err = s.Checkpoint(t.Context(), tree, Meta{})
		check(t, err)
	}
	packs, err := os.ReadDir(base + "/store/packs")
	check(t, err)
	for _, p := range packs {
		check(t, os.Remove(base+"/store/packs/"+p.Name()))
	}
	c, err := s.Checkpoint(t.Context(), tree, Meta{})
	check(t, err)
	check(t, s.Verify(t.Context(), c.ID))
}

// TestCacheIsNeverBelievedWrongly writes garbage over the cache of a tree, and compares checkpoint and digest.
func TestCacheIsNeverBelievedWrongly(t *testing.T) {
	t.Parallel()
	base, tree, s := treeAndStore(t, nil)
	_, err := s.Checkpoint(t.Context(), tree, Meta{})
	check(t, err)
	keys, err := s.trees()
	check(t, err)
	name := base + "/store/trees/" + keys[0] + "/cache"
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		data, err := os.ReadFile(name)
		check(t, err)
		switch i % 4 {
		case 0:
			data[rng.IntN(len(data))]++
		case 1:
			data = data[:rng.IntN(len(data))]
		case 2:
			for k := range data {
				data[k] = byte(rng.Int())
			}
		case 3:
			data = append(data, data...)
		}
		check(t, os.WriteFile(name, data, 0o600))
		check(t, os.WriteFile(tree+"/f", fmt.Append(nil, i), 0o644))
		c, err := s.Checkpoint(t.Context(), tree, Meta{})
		check(t, err)
		if digest, err := s.Digest(t.Context(), tree); err != nil || digest != c.Digest {
			t.Fatalf("round %d: checkpoint %x, digest %x, %v", i, c.Digest, digest, err)
		}
	}
}

func TestRefusedContents(t *testing.T) {
	t.Parallel()
	fifo := func(tree string) error { return unix.Mkfifo(tree+"/a-fifo", 0o600) }
	for name, c := range map[string]struct {
		make  func(tree string) error
		o     Options
		want  error
		named string
	}{
		"special":  {fifo, Options{}, ErrUnsupported, "a-fifo"},
		"skipped":  {fifo, Options{Special: SpecialSkip}, nil, ""},
		"set-id":   {func(tree string) error { return unix.Chmod(tree+"/f", 0o4755) }, Options{}, ErrUnsupported, `"f"`},
		"allowed":  {func(tree string) error { return unix.Chmod(tree+"/f", 0o4755) }, Options{Privileged: true}, nil, ""},
		"size":     {nil, Options{Limits: Limits{FileSize: 6}}, ErrTooLarge, `"f"`},
		"files":    {nil, Options{Limits: Limits{Files: 2}}, ErrTooLarge, ""},
		"depth":    {nil, Options{Limits: Limits{Depth: 1}}, ErrTooLarge, "sub/deep"},
		"excluded": {nil, Options{Exclude: []string{"sub"}, Limits: Limits{Files: 1}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.Sync = SyncProcess
			_, tree, s := treeAndStore(t, &c.o)
			if c.make != nil {
				check(t, c.make(tree))
			}
			cp, err := s.Checkpoint(t.Context(), tree, Meta{})
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.named) {
				t.Fatalf("got %v", err)
			}
			if name == "skipped" && (len(cp.Skipped) != 1 || cp.Skipped[0].Path != "a-fifo") {
				t.Errorf("skipped: %v", cp.Skipped)
			}
			if _, ok, err := s.last(cpKey(t, s)); err != nil || ok != (c.want == nil) {
				t.Errorf("a checkpoint exists: %v, %v", ok, err)
			}
		})
	}
}

func TestBadPatterns(t *testing.T) {
	t.Parallel()
	_, err := Open(t.TempDir(), &Options{Exclude: []string{"/f", "dir/", "good"}})
	if !errors.Is(err, fs.ErrInvalid) ||
		!strings.Contains(err.Error(), `"/f"`) || !strings.Contains(err.Error(), `"dir/"`) {
		t.Errorf("got %v", err)
	}
}

// cpKey returns the key of the only tree.
func cpKey(t *testing.T, s *Store) string {
	keys, err := s.trees()
	check(t, err)
	if len(keys) != 1 {
		return ""
	}
	return keys[0]
}

// TestFaultsOfACheckpoint lets every operation of the store fail in turn: there is an error and no checkpoint, or a
// checkpoint that is whole.
func TestFaultsOfACheckpoint(t *testing.T) {
	t.Parallel()
	for n := 1; n < 60; n++ {
		_, tree, s := treeAndStore(t, &Options{})
		inject, failed := failNth(n, unix.ENOSPC, false)
		s.inject = inject
		c, err := s.Checkpoint(t.Context(), tree, Meta{})
		s.inject = nil
		if err != nil && !errors.Is(err, ErrNoSpace) {
			t.Errorf("operation %d: %v", n, err)
		}
		if err == nil {
			check(t, s.Verify(t.Context(), c.ID))
		}
		if !failed.Load() {
			return
		}
		again, err := s.Checkpoint(t.Context(), tree, Meta{})
		check(t, err)
		check(t, s.Verify(t.Context(), again.ID))
	}
	t.Error("a checkpoint has more than 60 operations")
}
