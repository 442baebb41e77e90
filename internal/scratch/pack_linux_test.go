// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/scratch"
	"github.com/evoseal/containment/internal/testenv"
)

// described lists what can be seen of a tree.
func described(t testing.TB, top string) map[string]string {
	t.Helper()
	all := map[string]string{}
	check(t, filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		check(t, unix.Lstat(p, &st))
		text := fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
		switch {
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(p)
			check(t, err)
			text += " -> " + target
		case d.Type().IsRegular():
			data, err := os.ReadFile(p)
			check(t, err)
			text += fmt.Sprintf(" %d.%09d %q", st.Mtim.Sec, st.Mtim.Nsec, data[:min(len(data), 100)])
		default:
			text += fmt.Sprintf(" %d.%09d", st.Mtim.Sec, st.Mtim.Nsec)
		}
		rel, err := filepath.Rel(top, p)
		all[rel] = text
		return err
	}))
	return all
}

// unpack unpacks into a new directory and returns it.
func unpack(t testing.TB, data io.Reader, o scratch.UnpackOptions) (string, error) {
	t.Helper()
	dst := empty(t)
	f, err := os.Open(dst)
	check(t, err)
	defer f.Close()
	return dst, scratch.Unpack(data, f, o)
}

func self() *scratch.Owner { return &scratch.Owner{UID: os.Geteuid(), GID: os.Getegid()} }

func roomy(o *scratch.Owner) scratch.UnpackOptions {
	return scratch.UnpackOptions{Owner: *o, MaxBytes: 1 << 40, MaxFiles: 1 << 20}
}

// What comes out is what Copy makes of the same tree, by the same rules.
func TestPackEqualsCopy(t *testing.T) {
	overlay := plant(t, entry{"over/new", file("from the overlay", 0o640)}, entry{"a", file("replaced", 0o600)})
	src := plant(t,
		entry{"a", file("A", 0o751)}, entry{"empty", file("", 0o400)}, entry{"sub/b", file(strings.Repeat("b", 200_000), 0o644)},
		entry{"sub/deeper/c", file("\x00\xff", 0o600)}, entry{"link", link("sub/b")}, entry{"dangling", link("/no/such")},
		entry{".git/config", file("x", 0o644)}, entry{"hide/me", file("x", 0o644)}, entry{"none", dir(0o700)},
		entry{"sparse", sparse(1<<20, 300_000)}, entry{"hole", sparse(1<<20, 1<<20-1)}, entry{"odd \n\xff", file("o", 0o777)},
		entry{"over/old", file("stays", 0o644)},
	)
	check(t, os.Chtimes(filepath.Join(src, "sub"), time.Time{}, time.Unix(1_000_000_000, 123_456_789)))
	o := scratch.Options{
		Owner: self(), OmitNames: []string{".git"}, Omit: []string{"hide"}, Overlay: overlay, MaxBytes: 1 << 30, MaxFiles: 100,
	}
	for _, root := range []bool{false, true} {
		t.Run(fmt.Sprint("root=", root), func(t *testing.T) {
			if root {
				testenv.Need(t, "root")
				o.Owner, o.ReadOnly = &scratch.Owner{UID: 64912, GID: 64913}, []string{"sub/deeper", "a"}
			}
			want := empty(t)
			stats, err := scratch.Copy(t.Context(), src, want, o)
			check(t, err)
			var packed bytes.Buffer
			got, err := scratch.Pack(t.Context(), src, &packed, o)
			check(t, err)
			if got.Files != stats.Files || got.Dirs != stats.Dirs || got.Links != stats.Links || got.Bytes != stats.Bytes {
				t.Errorf("packed %+v, copied %+v", got, stats)
			}
			packed.WriteString("more")
			dst, err := unpack(t, &packed, roomy(o.Owner))
			check(t, err)
			if packed.String() != "more" {
				t.Errorf("%d bytes are left behind the tree, want 4", packed.Len())
			}
			if diff := cmp.Diff(described(t, want), described(t, dst)); diff != "" {
				t.Errorf("(-copied +packed):\n%s", diff)
			}
			if st := stat(t, filepath.Join(dst, "hole")); st.Blocks*512 >= st.Size {
				t.Error("the hole was filled")
			}
		})
	}
}

// Trees that Copy refuses are refused in the same words.
func TestPackRefuses(t *testing.T) {
	t.Parallel()
	ok := scratch.Options{Owner: self(), MaxBytes: 100, MaxFiles: 10}
	for name, c := range map[string]struct {
		src  string
		o    scratch.Options
		want error
	}{
		"fifo":     {plant(t, entry{"f", fifo}), ok, scratch.ErrSpecial},
		"bytes":    {plant(t, entry{"f", file(strings.Repeat("x", 101), 0o600)}), ok, scratch.ErrLimit},
		"files":    {plant(t, entry{"a/b/c/d/e/f/g/h/i/j/k", file("", 0o600)}), ok, scratch.ErrLimit},
		"no owner": {plant(t), scratch.Options{MaxBytes: 1, MaxFiles: 1}, scratch.ErrOptions},
		"covered":  {plant(t), scratch.Options{Owner: self(), Covered: []string{"x"}, MaxBytes: 1, MaxFiles: 1}, scratch.ErrOptions},
		"missing":  {"/no/such/directory", ok, fs.ErrNotExist},
	} {
		if _, err := scratch.Pack(t.Context(), c.src, io.Discard, c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A writer that fails ends the walk with its error.
func TestPackWriterFails(t *testing.T) {
	t.Parallel()
	src := plant(t, entry{"a", file(strings.Repeat("a", 1<<20), 0o600)}, entry{"b", file("b", 0o600)})
	_, err := scratch.Pack(t.Context(), src, failing{}, scratch.Options{Owner: self(), MaxBytes: 1 << 30, MaxFiles: 10})
	if !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

type failing struct{}

var errFull = errors.New("full")

func (failing) Write([]byte) (int, error) { return 0, errFull }

// A tree deeper than any table of descriptors comes out as deep.
func TestPackDeep(t *testing.T) {
	const levels = 3000
	src := plantIn(t, memory, entry{"top", deep(levels, "d")})
	var packed bytes.Buffer
	_, err := scratch.Pack(t.Context(), src, &packed, scratch.Options{Owner: self(), MaxBytes: 1, MaxFiles: levels + 2})
	check(t, err)
	before := openDescriptors(t)
	dst := emptyIn(t, memory)
	f, err := os.Open(dst)
	check(t, err)
	defer f.Close()
	check(t, scratch.Unpack(&packed, f, roomy(self())))
	if n := walkDown(t, filepath.Join(dst, "top"), "d"); n != levels {
		t.Errorf("%d levels, want %d", n, levels)
	}
	if after := openDescriptors(t); after > before+1 {
		t.Errorf("%d descriptors were open before, %d after", before, after)
	}
}

// item builds one item of a packed tree by hand.
func item(kind byte, parts ...any) string {
	b := []byte{kind}
	for _, p := range parts {
		switch v := p.(type) {
		case string:
			b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
		case int:
			b = binary.AppendUvarint(b, uint64(v))
		}
	}
	return string(b)
}

// hostile are packed trees that must not be believed.
func hostile() map[string]string {
	meta := []any{0o644, 0, 0}
	file := func(name string, content string) string {
		return item('f', append([]any{name}, meta...)...) + content + "e"
	}
	end := item('u', 0o755, 0, 0)
	return map[string]string{
		"nothing":            "",
		"dot":                item('d', ".") + end + end,
		"dot dot":            item('d', "..") + end + end,
		"empty name":         item('d', "") + end + end,
		"slash":              file("a/b", "") + end,
		"absolute":           file("/etc/x", "") + end,
		"up":                 file("../x", "") + end,
		"NUL":                file("a\x00b", "") + end,
		"long name":          file(strings.Repeat("x", 256), "") + end,
		"through a link":     item('l', "in", "/tmp", 0) + item('d', "in") + file("x", "") + end + end,
		"over a link":        item('l', "x", "/tmp/target", 0) + file("x", item('s', 1)+"y") + end,
		"twice":              file("x", "") + file("x", "") + end,
		"file as directory":  file("x", "") + item('d', "x") + end + end,
		"no end":             item('d', "a") + end,
		"device":             item('b', "dev", 0o644, 0, 0) + end,
		"hard link":          item('h', "x", "y") + end,
		"set-id":             item('f', "x", 0o4755, 0, 0) + "e" + end,
		"bits":               item('f', "x", 1<<20, 0, 0) + "e" + end,
		"nanoseconds":        item('f', "x", 0o644, 0, 1_000_000_000) + "e" + end,
		"too many bytes":     file("x", item('h', 2000)) + end,
		"huge hole":          file("x", item('h', 1<<62)) + end,
		"sum of holes":       file("x", item('h', 600)+item('h', 600)) + end,
		"segment too long":   file("x", item('s', 1<<20)) + end,
		"unknown segment":    file("x", item('q', 1)) + end,
		"number without end": "f\x01x\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"target with NUL":    item('l', "x", "a\x00b", 0) + end,
		"target too long":    item('l', "x", strings.Repeat("a", 5000), 0) + end,
		"too many entries":   strings.Repeat(item('d', "a"), 20) + strings.Repeat(end, 21),
	}
}

func TestUnpackHostile(t *testing.T) {
	t.Parallel()
	for name, data := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := scratch.UnpackOptions{Owner: *self(), MaxBytes: 1000, MaxFiles: 10}
			dst, err := unpack(t, strings.NewReader(data), o)
			var entry *scratch.EntryError
			if !errors.Is(err, scratch.ErrPacked) && !errors.As(err, &entry) {
				t.Errorf("error %v", err)
			}
			for p := range described(t, filepath.Dir(dst)) {
				if p != "." && p != filepath.Base(dst) && !strings.HasPrefix(p, filepath.Base(dst)+"/") {
					t.Errorf("%s was made outside", p)
				}
			}
		})
	}
	if _, err := unpack(t, strings.NewReader(""), scratch.UnpackOptions{}); !errors.Is(err, scratch.ErrOptions) {
		t.Errorf("no limits: %v", err)
	}
}

// FuzzUnpack: whatever arrives, nothing is made outside, nothing is larger than allowed, and no set-id bit comes out.
func FuzzUnpack(f *testing.F) {
	for _, data := range hostile() {
		f.Add([]byte(data))
	}
	var packed bytes.Buffer
	src := plant(f, entry{"a/b", file("content", 0o644)}, entry{"l", link("a/b")}, entry{"s", sparse(4096, 100)})
	_, err := scratch.Pack(f.Context(), src, &packed, scratch.Options{Owner: self(), MaxBytes: 1 << 20, MaxFiles: 10})
	check(f, err)
	f.Add(packed.Bytes())
	top := tempIn(f, memory)
	f.Fuzz(func(t *testing.T, data []byte) {
		dst, err := os.MkdirTemp(top, "u")
		check(t, err)
		defer func() { check(t, scratch.Remove(context.Background(), dst)) }()
		d, err := os.Open(dst)
		check(t, err)
		defer d.Close()
		_ = scratch.Unpack(bytes.NewReader(data), d, scratch.UnpackOptions{Owner: *self(), MaxBytes: 1 << 16, MaxFiles: 20})
		check(t, os.Chmod(dst, 0o700))
		size, entries := int64(0), 0
		_ = filepath.WalkDir(dst, func(p string, e fs.DirEntry, err error) error {
			if err != nil {
				return fs.SkipDir // a mode that keeps an ordinary user out
			}
			var st unix.Stat_t
			check(t, unix.Lstat(p, &st))
			if entries++; st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
				t.Errorf("%s has mode %o", p, st.Mode)
			}
			if e.Type().IsRegular() {
				size += st.Size
			}
			return nil
		})
		if size > 1<<16 || entries > 21 {
			t.Errorf("%d bytes in %d entries", size, entries)
		}
	})
}
