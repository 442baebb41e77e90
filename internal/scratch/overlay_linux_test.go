// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/scratch"
	"github.com/evoseal/containment/internal/testenv"
)

// contents maps each file below top to its text and each link to its target; names end as those of names do.
func contents(t *testing.T, top string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, name := range names(t, top) {
		p := filepath.Join(top, strings.TrimSuffix(name, "@"))
		switch {
		case strings.HasSuffix(name, "/"):
			m[name] = ""
		case strings.HasSuffix(name, "@"):
			target, err := os.Readlink(p)
			check(t, err)
			m[name] = target
		default:
			data, err := os.ReadFile(p)
			check(t, err)
			m[name] = string(data)
		}
	}
	return m
}

func overlaid(overlay string) scratch.Options {
	o := large
	o.Overlay = overlay
	return o
}

// Whatever the source has in the way, the overlay's file is what stands in the copy, and nothing is followed.
func TestOverlayWins(t *testing.T) {
	t.Parallel()
	outside := plant(t, entry{"a_test", file("outside", 0o644)}, entry{"sub/b_test", file("outside", 0o644)})
	overlay := plant(t, entry{"tests/a_test", file("trusted", 0o755)}, entry{"tests/sub/b_test", file("trusted b", 0o600)},
		entry{"build", file("trusted build", 0o644)}, entry{"void", dir(0o750)})
	trusted := map[string]string{
		"tests/": "", "tests/a_test": "trusted", "tests/sub/": "", "tests/sub/b_test": "trusted b", "build": "trusted build", "void/": "",
	}
	for name, c := range map[string]struct {
		src  []entry
		more map[string]string // what the copy has beside the overlay's
	}{
		"nothing": {nil, nil},
		"files": {[]entry{{"tests/a_test", file("own", 0o600)}, {"build", file("own", 0o600)}, {"tests/c", file("own", 0o600)},
			{"other/d", file("own", 0o600)}}, map[string]string{"tests/c": "own", "other/": "", "other/d": "own"}},
		"link to a directory": {[]entry{{"tests", link(outside)}}, nil},
		"link further down":   {[]entry{{"tests/sub", link(outside + "/sub")}}, nil},
		"link to a file":      {[]entry{{"tests/a_test", link(outside + "/a_test")}, {"build", link("tests")}}, nil},
		"dangling link":       {[]entry{{"tests/a_test", link("none")}, {"void", link("void")}}, nil},
		"link beside":         {[]entry{{"tests/l", link(outside)}}, map[string]string{"tests/l@": outside}},
		"directory instead":   {[]entry{{"tests/a_test/x/y", file("own", 0o600)}, {"build/deep/z", file("own", 0o600)}}, nil},
		"file instead":        {[]entry{{"tests", file("own", 0o600)}, {"void", file("own", 0o600)}}, nil},
		"special instead":     {[]entry{{"tests/a_test", fifo}, {"build", socket}, {"void", fifo}}, nil},
	} {
		src, dst := plant(t, c.src...), empty(t)
		before := names(t, src)
		stats, err := scratch.Copy(t.Context(), src, dst, overlaid(overlay))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := map[string]string{}
		for _, m := range []map[string]string{trusted, c.more} {
			for k, v := range m {
				want[k] = v
			}
		}
		if diff := cmp.Diff(want, contents(t, dst)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if n := stats.Files + stats.Dirs + stats.Links; int(n) != len(want) {
			t.Errorf("%s: %d entries are counted, and there are %d", name, n, len(want))
		}
		if diff := cmp.Diff(before, names(t, src)); diff != "" {
			t.Errorf("%s: the source has changed:\n%s", name, diff)
		}
		modes := []uint32{stat(t, dst+"/tests/a_test").Mode & 0o7777, stat(t, dst+"/tests/sub/b_test").Mode & 0o7777}
		if diff := cmp.Diff([]uint32{0o755, 0o600}, modes); diff != "" {
			t.Errorf("%s: modes (-want +got):\n%s", name, diff)
		}
	}
}

// What is replaced is not looked into, so it need not be readable.
func TestOverlayOverClosedDirectory(t *testing.T) {
	t.Parallel()
	src, overlay, dst := plant(t, entry{"f", dir(0)}), plant(t, entry{"f", file("trusted", 0o644)}), empty(t)
	_, err := scratch.Copy(t.Context(), src, dst, overlaid(overlay))
	check(t, err)
	if diff := cmp.Diff(map[string]string{"f": "trusted"}, contents(t, dst)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Rules are about the copy, wherever its entries come from.
func TestOverlayAndRules(t *testing.T) {
	testenv.Need(t, "root")
	t.Parallel()
	src := plant(t, entry{"tests", link("/etc")}, entry{"key", link("/etc/passwd")}, entry{"cfg/free", file("x", 0o600)})
	overlay := plant(t, entry{"tests/a", file("x", 0o600)}, entry{"tests/b", file("x", 0o600)}, entry{"key", file("x", 0o644)},
		entry{"keys/k", file("x", 0o644)}, entry{"cfg/rules", file("x", 0o600)}, entry{".git/config", file("x", 0o644)},
		entry{"left", file("x", 0o644)}, entry{"out/x", file("x", 0o644)})
	check(t, os.Chmod(overlay, 0o700))
	dst := reachable(t, src, scratch.Options{
		Overlay: overlay, ReadOnly: []string{"tests/a", "cfg/rules"}, Sealed: []string{"key", "keys"},
		OmitNames: []string{".git"}, Omit: []string{"left", "out/x"},
	})
	forbidden := []string{
		"write tests/a", "chmod tests/a", "remove tests/a", "rename tests/a", "over tests/a", "rename tests", "chmod tests",
		"write cfg/rules", "remove cfg/rules", "read key", "write key", "remove key", "list keys", "read keys/k", "list .git", "read left",
		"read out/x",
	}
	if got := asRun(t, dst, forbidden...); len(got) > 0 {
		t.Errorf("the run can %q", got)
	}
	allowed := []string{"read tests/a", "read tests/b", "write tests/b", "remove tests/b", "create tests/new", "read cfg/rules",
		"write cfg/free", "create cfg/new", "list out"}
	if diff := cmp.Diff(allowed, asRun(t, dst, allowed...)); diff != "" {
		t.Errorf("the run can (-want +got):\n%s", diff)
	}
}

// What does not belong into an overlay is named, all of it, and nothing is copied.
func TestOverlayRefuses(t *testing.T) {
	t.Parallel()
	mixed := plant(t, entry{"ok/f", file("x", 0o644)}, entry{"ok/l", link("f")}, entry{"d", link("ok")}, entry{".git/l", link("/")},
		entry{"p", fifo}, entry{"ok/s", socket})
	fine := plant(t, entry{"a", file("x", 0o644)}, entry{"b/c", file("xyz", 0o644)})
	top := plant(t, entry{"link", link(fine)}, entry{"file", file("x", 0o644)})
	few, little := large, large
	few.MaxFiles, little.MaxBytes = 2, 3
	for name, c := range map[string]struct {
		overlay string
		o       scratch.Options
		want    error
		named   []string
	}{
		"links and special files": {mixed, large, scratch.ErrOverlay, []string{"ok/l", "d", ".git/l", "p", "ok/s", "symbolic link", "FIFO", "socket"}},
		"a link as the top":       {top + "/link", large, unix.ENOTDIR, []string{top}},
		"a link with a slash":     {top + "/link/", large, unix.ENOTDIR, []string{top}},
		"a file as the top":       {top + "/file", large, unix.ENOTDIR, []string{top}},
		"nothing":                 {top + "/none", large, unix.ENOENT, []string{top}},
		"many entries":            {fine, few, scratch.ErrLimit, []string{"overlay"}},
		"much data":               {fine, little, scratch.ErrLimit, nil},
	} {
		src, dst := plant(t, entry{"f", file("", 0o644)}), empty(t)
		c.o.Overlay = c.overlay
		_, err := scratch.Copy(t.Context(), src, dst, c.o)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		for _, word := range c.named {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q is not named in %v", name, word, err)
			}
		}
		if got := names(t, dst); c.want != scratch.ErrLimit && len(got) > 0 {
			t.Errorf("%s: copied all the same: %q", name, got)
		}
	}
}

// The overlay goes on where the source ends, further down than directories are held open, and both go on beside it.
func TestOverlayDeep(t *testing.T) {
	t.Parallel()
	half, end := strings.Repeat("d/", 50), strings.Repeat("d/", 100)
	src := plantIn(t, memory, entry{half + "own", file("own", 0o644)}, entry{"z/own", file("own", 0o644)},
		entry{"d/z/own", file("own", 0o644)}, entry{half + "z/own", file("own", 0o644)})
	overlay := plantIn(t, memory, entry{end + "f", file("trusted", 0o644)}, entry{half + "z/f", file("trusted", 0o644)},
		entry{"d/z/f", file("trusted", 0o644)})
	dst := emptyIn(t, memory)
	_, err := scratch.Copy(t.Context(), src, dst, overlaid(overlay))
	check(t, err)
	want := contents(t, src)
	for name, text := range contents(t, overlay) {
		want[name] = text
	}
	if diff := cmp.Diff(want, contents(t, dst)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A source that turns its directory into a link and back decides nothing about what the overlay has there.
func TestOverlayRace(t *testing.T) {
	t.Parallel()
	outside := plantIn(t, memory, entry{"f", file("outside", 0o644)}, entry{"g", file("outside", 0o644)})
	src := plantIn(t, memory, entry{"d/f", file("inside", 0o644)}, entry{"d/g", file("inside", 0o644)}, entry{"d/e/f", file("inside", 0o644)})
	other := plantIn(t, memory, entry{"d", link(outside)})
	overlay := plantIn(t, memory, entry{"d/f", file("trusted", 0o644)}, entry{"d/e/f", file("trusted", 0o644)})
	var stop atomic.Bool
	var attacker sync.WaitGroup
	attacker.Go(func() {
		for !stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, src+"/d", unix.AT_FDCWD, other+"/d", unix.RENAME_EXCHANGE)
		}
	})
	defer attacker.Wait()
	defer stop.Store(true)
	met := map[string]int{}
	for range 300 {
		dst := emptyIn(t, memory)
		if _, err := scratch.Copy(t.Context(), src, dst, overlaid(overlay)); err != nil {
			t.Fatal(err)
		}
		got := contents(t, dst)
		if got["d/f"] != "trusted" || got["d/e/f"] != "trusted" || got["d/g"] == "outside" {
			t.Fatalf("the copy holds %q", got)
		}
		met[got["d/g"]]++
		check(t, scratch.Remove(t.Context(), dst))
	}
	if len(met) != 2 {
		t.Errorf("inconclusive: %v", met)
	}
}

// TestOpenOverlay is the way of whoever packs a tree without Copy.
func TestOpenOverlay(t *testing.T) {
	t.Parallel()
	top := plant(t, entry{"a", file("text", 0o755)}, entry{"d/b", file("", 0o644)}, entry{"gone", file("", 0o644)},
		entry{"link", file("", 0o644)}, entry{"pipe", file("", 0o644)}, entry{"p/f", file("", 0o644)})
	o, err := scratch.OpenOverlay(t.Context(), top, 100)
	check(t, err)
	defer o.Close()
	var got []string
	for name, n := range o.Root().All() {
		got = append(got, name)
		if n.Dir() != (name == "d" || name == "p") {
			t.Errorf("%s: Dir is %v", name, n.Dir())
		}
	}
	if diff := cmp.Diff([]string{"a", "d", "gone", "link", "p", "pipe"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	a := o.Root().Child("a")
	if a.Mode() != 0o755 || a.Size() != 4 || a.Child("x") != nil || o.Root().Child("d").Child("none").Dir() {
		t.Errorf("a has mode %v and size %d", a.Mode(), a.Size())
	}
	f, err := o.Open("a")
	check(t, err)
	data, err := io.ReadAll(f)
	check(t, errors.Join(err, f.Close()))
	if string(data) != "text" {
		t.Errorf("a holds %q", data)
	}
	for _, name := range []string{"gone", "link", "pipe"} {
		check(t, os.Remove(filepath.Join(top, name)))
	}
	check(t, errors.Join(os.Symlink("a", top+"/link"), unix.Mkfifo(top+"/pipe", 0o600), os.Rename(top+"/p", top+"/q"), os.Symlink("q", top+"/p")))
	for _, name := range []string{"gone", "link", "pipe", "d", "p/f"} {
		f, err := o.Open(name)
		entry, ok := errors.AsType[*scratch.EntryError](err)
		if !errors.Is(err, scratch.ErrChanged) || !ok || entry.Op != "overlay" || entry.Path != name {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	for _, name := range []string{"../tree/a", "/etc/passwd"} {
		if f, err := o.Open(name); err == nil {
			t.Errorf("%s was opened: %v", name, f.Name())
		}
	}
}
