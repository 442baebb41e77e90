// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/rollback/internal/object"
)

// put writes files by path, directories included.
func put(t testing.TB, root string, files ...string) {
	t.Helper()
	for _, name := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("content of "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestShapes: what section 2 of the design promises, one tree for each kind.
func TestShapes(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(t *testing.T, root string){
		"empty": func(t *testing.T, root string) {},
		"empty things": func(t *testing.T, root string) {
			must(t, os.MkdirAll(root+"/a/b/c", 0o755))
			must(t, os.WriteFile(root+"/f", nil, 0o644))
		},
		"links": func(t *testing.T, root string) {
			for i, target := range []string{"f", "/etc/passwd", "nowhere", "..", "self", strings.Repeat("x", 4000)} {
				must(t, os.Symlink(target, fmt.Sprint(root, "/", i)))
			}
			must(t, os.Symlink("self", root+"/self"))
		},
		"names": func(t *testing.T, root string) {
			put(t, root, "new\nline", "bad\xff\xfe", strings.Repeat("n", 255), "-rf", "'quo\"te", " ", "\x01",
				"a/.gitignore", ".gi", "git")
		},
		"times": func(t *testing.T, root string) {
			for i, sec := range []int64{-2_000_000_000, -1, 0, 1, 1 << 32, 1<<33 + 5} {
				p := fmt.Sprint(root, "/", i)
				put(t, root, fmt.Sprint(i))
				ts := unix.Timespec{Sec: sec, Nsec: 123456789}
				must(t, unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{ts, ts}, 0))
			}
		},
		"modes": func(t *testing.T, root string) {
			for mode := 0; mode < 0o1000; mode += 3 {
				if mode&0o400 != 0 || os.Getuid() == 0 {
					p := fmt.Sprintf("%s/%o", root, mode)
					put(t, root, fmt.Sprintf("%o", mode))
					must(t, os.Chmod(p, fs.FileMode(mode)))
				}
			}
			must(t, os.Mkdir(root+"/sticky", 0o755))
			must(t, unix.Chmod(root+"/sticky", 0o3755))
		},
		"hard links": func(t *testing.T, root string) {
			put(t, root, "z/one", "alone")
			must(t, os.Link(root+"/z/one", root+"/b"))
			must(t, os.Link(root+"/z/one", root+"/z/a"))
			must(t, os.Link(root+"/alone", filepath.Dir(root)+"/outside"))
		},
		"git": func(t *testing.T, root string) {
			put(t, root, ".git/HEAD", "sub/.GIT/x", "sub/.Git/y", "sub2/.git", "sub2/f", ".gitx",
				".rollback-x/f", "sub/.rollback-x/f")
			must(t, os.Chmod(root+"/.git/HEAD", 0))
			must(t, os.Chmod(root+"/.git", 0))
		},
		"sizes": func(t *testing.T, root string) {
			for _, size := range []int{0, 1, smallFile - 1, smallFile, smallFile + 1, object.MaxBlob, object.MaxBlob + 1} {
				data := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
				must(t, os.WriteFile(fmt.Sprint(root, "/", size), data, 0o644))
			}
		},
		"holes": func(t *testing.T, root string) {
			for i, offsets := range [][]int64{{}, {0}, {9 << 20}, {17<<20 + 4096}, {8 << 20, 16 << 20}} {
				f, err := os.Create(fmt.Sprint(root, "/", i))
				must(t, err)
				must(t, f.Truncate(18<<20))
				for _, off := range offsets {
					_, err := f.WriteAt([]byte("data"), off)
					must(t, err)
				}
				must(t, f.Close())
			}
			must(t, os.WriteFile(root+"/zeros", make([]byte, 18<<20), 0o644)) // not a hole on disk, and the same content
		},
		"depth": func(t *testing.T, root string) {
			must(t, os.MkdirAll(root+strings.Repeat("/d", 300), 0o755))
			put(t, root+strings.Repeat("/d", 300), "f")
		},
		"long path": func(t *testing.T, root string) {
			name := strings.Repeat("n", 250)
			at, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
			must(t, err)
			for range 20 { // 5,000 bytes: more than one call takes
				must(t, unix.Mkdirat(at, name, 0o755))
				next, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY, 0)
				must(t, err)
				unix.Close(at)
				at = next
			}
			unix.Close(at)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join(t.TempDir(), "tree")
			must(t, os.Mkdir(root, 0o755))
			build(t, root)
			t.Cleanup(func() { _ = os.Chmod(root+"/.git", 0o755) })
			fd := openDir(t, root)
			for _, workers := range []int{1, 4} {
				if workers > 1 && (name == "sizes" || name == "holes") {
					continue // they take long
				}
				o := Options{Workers: workers, Limits: roomy, Sink: newMemory()}
				r := mustScan(t, fd, o)
				if name == "long path" {
					if r.Dirs != 20 {
						t.Fatalf("%d directories", r.Dirs)
					}
					continue
				}
				equalsReference(t, root, r, o)
				data, _ := r.CacheFile()
				if o.Cache = ParseCache(data); o.Cache == nil {
					t.Fatal("no cache")
				}
				equalsReference(t, root, mustScan(t, fd, o), o)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "a", "b/c", "b/d/e", "f")
	fd := openDir(t, root)
	for field, l := range map[string]Limits{
		"Files": {5, 1000, 1000, 9}, "Bytes": {9, 20, 1000, 9}, "FileSize": {9, 1000, 13, 9}, "Depth": {9, 1000, 1000, 1},
		"": {6, 54, 16, 2},
	} {
		_, err := Scan(t.Context(), fd, Options{Limits: l})
		limit, ok := errors.AsType[*LimitError](err)
		switch {
		case field == "" && err != nil:
			t.Errorf("exactly at the limits: %v", err)
		case field != "" && (!ok || limit.Limit != field || limit.Path == "" || limit.Value <= limit.Bound):
			t.Errorf("%s: got %v", field, err)
		}
		r, err := Scan(t.Context(), fd, Options{Limits: l, Tolerate: true})
		if err != nil || field != "" && (len(r.Foreign) == 0 || r.Foreign[0].Why != TooLarge) {
			t.Errorf("%s, tolerated: %v, %v", field, r, err)
		}
	}
}

func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "a", "d/b")
	for _, p := range []string{"d/fifo", "fifo"} {
		must(t, unix.Mkfifo(filepath.Join(root, p), 0o600))
	}
	fd := openDir(t, root)
	_, err := Scan(t.Context(), fd, Options{Limits: roomy})
	e, ok := errors.AsType[*SpecialError](err)
	if !ok || len(e.Found) != 2 || e.Found[0] != (Foreign{"d/fifo", Special, "FIFO"}) {
		t.Errorf("got %v", err)
	}
	r := mustScan(t, fd, Options{SkipSpecial: true})
	equalsReference(t, root, r, Options{})
	if len(r.Foreign) != 2 || r.Foreign[1].Path != "fifo" {
		t.Errorf("foreign: %v", r.Foreign)
	}
}

func TestSetID(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "a", "b/c", "d")
	for p, mode := range map[string]uint32{"a": 0o4755, "b/c": 0o2755, "b": 0o2755} {
		must(t, unix.Chmod(filepath.Join(root, p), mode))
	}
	fd := openDir(t, root)
	_, err := Scan(t.Context(), fd, Options{Limits: roomy, RefuseSetID: true})
	if e, ok := errors.AsType[*SetIDError](err); !ok || fmt.Sprint(e.Paths) != "[a b/c]" {
		t.Errorf("got %v", err)
	}
	equalsReference(t, root, mustScan(t, fd, Options{}), Options{})
}

// TestUnreadable: every file and directory that cannot be read is named, and there is no result.
func TestUnreadable(t *testing.T) {
	testenv.Need(t, "unprivileged")
	t.Parallel()
	root := t.TempDir()
	put(t, root, "a", "b/c", "b/d", "e/f", "g")
	for _, p := range []string{"a", "b/c", "e"} {
		must(t, os.Chmod(filepath.Join(root, p), 0))
	}
	t.Cleanup(func() { _ = os.Chmod(root+"/e", 0o755) })
	fd := openDir(t, root)
	r, err := Scan(t.Context(), fd, Options{Limits: roomy})
	if r != nil || !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("got %v, %v", r, err)
	}
	var named []string
	for _, f := range err.(*Error).Failures {
		named = append(named, f.(*fs.PathError).Path)
	}
	if fmt.Sprint(named) != "[e a b/c]" { // by their messages: list before read
		t.Errorf("named: %q", named)
	}
	r, err = Scan(t.Context(), fd, Options{Limits: roomy, Tolerate: true})
	want := Foreign{"a", Unreadable, "permission denied"}
	if err != nil || r.Files != 2 || len(r.Foreign) != 3 || r.Foreign[0] != want {
		t.Errorf("tolerated: %+v, %v", r, err)
	}
}

// TestSparse: a file of 1 TiB costs what its data costs.
func TestSparse(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f, err := os.Create(root + "/sparse")
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(1<<40))
	_, err = f.WriteAt([]byte("in the middle"), 1<<39+5)
	must(t, err)
	sink := newMemory()
	r := mustScan(t, openDir(t, root), Options{Sink: sink})
	if r.Bytes != 1<<40 || len(sink.keys) != 3 { // a chunk, the list, the directory
		t.Errorf("%d bytes, %d objects", r.Bytes, len(sink.keys))
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "a", "b/c")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	sink := &hookSink{memory: newMemory(), hook: func() { cancel(cause); time.Sleep(time.Millisecond) }}
	if _, err := Scan(ctx, openDir(t, root), Options{Limits: roomy, Sink: sink}); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// hookSink calls a hook for each object.
type hookSink struct {
	*memory
	hook func()
}

func (h *hookSink) Add(t object.Type, raw []byte) (object.Key, error) {
	h.hook()
	return h.memory.Add(t, raw)
}

func TestSinkError(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "a", "b/c")
	sink := newMemory()
	sink.fail = unix.ENOSPC
	for _, tolerate := range []bool{false, true} {
		o := Options{Limits: roomy, Sink: sink, Tolerate: tolerate}
		if _, err := Scan(t.Context(), openDir(t, root), o); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("tolerate %v: got %v", tolerate, err)
		}
	}
}

// TestMounts: another file system is named and not entered; so is a bind mount of the same one, on a directory and on a
// file.
func TestMounts(t *testing.T) {
	testenv.Need(t, "tmpfs-mount")
	root := t.TempDir()
	put(t, root, "a", "other/hidden", "bind/hidden", "file", "source/secret")
	mount := func(source, target, kind string, flags uintptr) {
		target = filepath.Join(root, target)
		must(t, unix.Mount(source, target, kind, flags, ""))
		t.Cleanup(func() { must(t, unix.Unmount(target, unix.MNT_DETACH)) })
	}
	mount("tmpfs", "other", "tmpfs", 0)
	put(t, root, "other/secret")
	mount(root+"/source", "bind", "", unix.MS_BIND)
	mount(root+"/source/secret", "file", "", unix.MS_BIND)
	r := mustScan(t, openDir(t, root), Options{})
	for i, path := range []string{"bind", "file", "other"} {
		if len(r.Foreign) != 3 || r.Foreign[i] != (Foreign{path, Mount, ""}) {
			t.Fatalf("foreign: %v", r.Foreign)
		}
	}
	if r.Files != 2 || r.Dirs != 1 {
		t.Errorf("%d files, %d directories", r.Files, r.Dirs)
	}
}
