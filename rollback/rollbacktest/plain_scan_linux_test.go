// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// scanner reads a tree into entries and blobs.
type scanner struct {
	*plain
	ctx     context.Context
	root    string
	exclude []string
	store   bool // keep the blobs; else only hash
	safety  bool // of what a restore finds: set-id files and special files are no obstacle
	c       rollback.Checkpoint
	entries int64
	lists   map[string][]entry   // every directory's entries, by path
	foreign map[string]string    // what is not captured, with the reason
	groups  map[[2]uint64]string // first name of each inode
	links   map[string][2]uint64 // names whose inode has several
	held    [][]byte             // for a defect

	rootEntry entry
}

func (p *plain) scanner(ctx context.Context, root string, exclude []string) *scanner {
	return &scanner{plain: p, ctx: ctx, root: root, exclude: exclude, lists: map[string][]entry{},
		foreign: map[string]string{},
		groups:  map[[2]uint64]string{}, links: map[string][2]uint64{}}
}

var errMoved = errors.New("changed while it was read")

func (sc *scanner) scan() (root entry, err error) {
	for range 5 {
		again := sc.plain.scanner(sc.ctx, sc.root, sc.exclude)
		again.store, again.safety = sc.store, sc.safety
		*sc = *again
		if root, err = sc.once(); !errors.Is(err, errMoved) {
			return root, err
		}
	}
	return root, &rollback.UnstableError{Paths: []string{err.Error()}}
}

func (sc *scanner) once() (root entry, err error) {
	info, err := os.Lstat(sc.root)
	if err != nil {
		return root, err
	}
	if root, err = sc.attributes(".", info); err != nil {
		return root, err
	}
	if err := sc.readDir(".", 0); err != nil {
		return root, err
	}
	sc.group()
	tree, content := sha256.New(), sha256.New()
	if root.Data, err = sc.lay(".", tree, content); err != nil {
		return root, err
	}
	whole, err := json.Marshal(root)
	if err != nil {
		return root, err
	}
	tree.Write(whole)
	sc.rootEntry = root
	sc.c.Digest = rollback.Digest{Tree: [32]byte(tree.Sum(nil)), Content: [32]byte(content.Sum(nil))}
	if sc.d == digestIsContent {
		sc.c.Digest.Tree = sc.c.Digest.Content
	}
	return root, nil
}

// attributes fills in all but what the entry holds.
func (sc *scanner) attributes(rel string, info fs.FileInfo) (e entry, err error) {
	st := sysStat(info)
	e = entry{Name: []byte(path.Base(rel)), Mode: st.Mode, Sec: st.Mtim.Sec, Nsec: int64(st.Mtim.Nsec)}
	if sc.o.Owner {
		e.UID, e.GID = st.Uid, st.Gid
	}
	switch {
	case sc.d == dropsTimes:
		e.Sec, e.Nsec = 0, 0
	case sc.d == roundsTimes:
		e.Nsec = 0
	case sc.d == executeBitOnly:
		e.Mode = st.Mode&unix.S_IFMT | 0o644 | st.Mode&0o100
	}
	if sc.o.Xattrs && sc.d != dropsXattrs && e.kind() != unix.S_IFLNK {
		text, err := xattrs(sc.root + "/" + rel)
		if err != nil {
			return e, err
		}
		e.Xattrs = map[string][]byte{}
		for pair := range strings.SplitSeq(text, "\n") {
			if name, _, ok := strings.Cut(pair, "="); ok {
				value := make([]byte, 1024)
				n, err := unix.Lgetxattr(sc.root+"/"+rel, name, value)
				if err != nil {
					return e, err
				}
				e.Xattrs[name] = value[:n]
			}
		}
	}
	return e, nil
}

// readDir lists a directory and everything below it.
func (sc *scanner) readDir(rel string, depth int) error {
	if err := sc.ctx.Err(); err != nil && sc.d != ignoresContext {
		return err
	}
	if depth > sc.o.Limits.Depth {
		return &rollback.LimitError{Path: rel, Limit: "Depth", Value: int64(depth), Bound: int64(sc.o.Limits.Depth)}
	}
	full := sc.root + "/" + rel
	before, err := os.Lstat(full)
	if err != nil {
		return moved(err)
	}
	list, err := os.ReadDir(full)
	if err != nil {
		if sc.d == swallowsErrors {
			return nil
		}
		return moved(err)
	}
	for _, d := range list {
		name := path.Join(rel, d.Name())
		if rel == "." {
			name = d.Name()
		}
		if err := sc.one(name, depth, sysStat(before).Dev); err != nil {
			return err
		}
	}
	after, err := os.Lstat(full)
	if err != nil || sysStat(before).Ctim != sysStat(after).Ctim && sc.d != listedSize {
		return fmt.Errorf("%w: %s", errMoved, rel)
	}
	return nil
}

// moved tells that a name vanished between listing and use.
func moved(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	return err
}

func (sc *scanner) one(rel string, depth int, dev uint64) error {
	info, err := os.Lstat(sc.root + "/" + rel)
	if sc.d == followsLinks {
		if target, e := os.Stat(sc.root + "/" + rel); e == nil && info.Name() != "self" {
			info = target
		}
	}
	if err != nil {
		return moved(err)
	}
	st := sysStat(info)
	special := info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) != 0
	switch {
	case strings.EqualFold(path.Base(rel), ".git") && sc.d != knowsNoGit:
		sc.foreign[rel] = ".git"
		return nil
	case depth == 0 && strings.HasPrefix(rel, ".rollback-"):
		return nil
	case sc.excluded(rel):
		sc.foreign[rel] = "excluded"
		return nil
	case mounted(sc.root+"/"+rel, st.Dev != dev):
		sc.foreign[rel] = "mount"
		return nil
	case special && sc.d == dropsSpecial:
		return nil
	case special && sc.o.Special == rollback.SpecialRefuse && !sc.safety:
		return fmt.Errorf("%w: %q is a special file", rollback.ErrUnsupported, rel)
	case special:
		sc.foreign[rel] = "special"
		sc.c.Skipped = append(sc.c.Skipped, rollback.Skipped{Path: rel, Why: "special"})
		return nil
	case info.Mode().IsRegular() && st.Mode&0o6000 != 0 && !sc.o.Privileged && !sc.safety && sc.d != capturesSetID:
		return fmt.Errorf("%w: %q is set-id", rollback.ErrUnsupported, rel)
	}
	if sc.entries++; sc.entries > sc.o.Limits.Files {
		return &rollback.LimitError{Path: rel, Limit: "Files", Value: sc.entries, Bound: sc.o.Limits.Files}
	}
	e, err := sc.attributes(rel, info)
	if err != nil {
		return moved(err)
	}
	switch e.kind() {
	case unix.S_IFDIR:
		sc.c.Dirs++
		if err := sc.readDir(rel, depth+1); err != nil {
			return err
		}
		if sc.d == dropsEmpty && len(sc.lists[rel]) == 0 {
			return nil
		}
	case unix.S_IFLNK:
		sc.c.Links++
		target, err := os.Readlink(sc.root + "/" + rel)
		if err != nil {
			return moved(err)
		}
		e.Target = []byte(target)
	default:
		if err := sc.file(rel, &e, info); err != nil {
			if sc.d == swallowsErrors && errors.Is(err, fs.ErrPermission) {
				return nil
			}
			if sc.safety && sc.o.Foreign == rollback.ForeignQuarantine && errors.Is(err, rollback.ErrTooLarge) {
				sc.foreign[rel] = "too large"
				return nil
			}
			return err
		}
		if st.Nlink > 1 && sc.d != splitsLinks {
			sc.links[rel] = [2]uint64{st.Dev, st.Ino}
		}
	}
	sc.lists[path.Dir(rel)] = append(sc.lists[path.Dir(rel)], e)
	return nil
}

// excluded knows two kinds of patterns: without a slash, for any depth; with one, from the root.
func (sc *scanner) excluded(rel string) bool {
	return slices.ContainsFunc(sc.exclude, func(pattern string) bool {
		name := rel
		if !strings.Contains(pattern, "/") {
			name = path.Base(rel)
		}
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// file reads a file twice stat'ed, in pieces, so that holes cost nothing.
func (sc *scanner) file(rel string, e *entry, listed fs.FileInfo) error {
	if listed.Size() > sc.o.Limits.FileSize && sc.d != ignoresLimits {
		return &rollback.LimitError{Path: rel, Limit: "FileSize", Value: listed.Size(), Bound: sc.o.Limits.FileSize}
	}
	if key := fmt.Sprint(rel, listed.Size(), listed.ModTime()); sc.d == timeAndSize {
		if data, known := cache[sc.dir+key]; known {
			e.Data, e.Size = data, listed.Size()
			return nil
		}
		defer func() { cache[sc.dir+key] = e.Data }()
	}
	if sc.d == listedSize && sc.store && !sc.safety {
		until(func() bool {
			info, err := os.Lstat(sc.root + "/" + rel)
			return err != nil || info.Size() != listed.Size()
		})
	}
	for range 4 {
		f, err := os.OpenFile(sc.root+"/"+rel, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return moved(err)
		}
		before, err := f.Stat()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		err = sc.content(f, e, listed.Size())
		after, serr := f.Stat()
		if err = errors.Join(err, serr, f.Close()); err != nil {
			return err
		}
		a, b := sysStat(before), sysStat(after)
		if a.Ctim == b.Ctim && a.Mtim == b.Mtim && a.Size == e.Size && b.Size == e.Size || sc.d == noSecondStat ||
			sc.d == listedSize {
			sc.c.Files++
			if sc.c.Bytes += e.Size; sc.c.Bytes > sc.o.Limits.Bytes && sc.d != ignoresLimits {
				return &rollback.LimitError{Path: rel, Limit: "Bytes", Value: sc.c.Bytes, Bound: sc.o.Limits.Bytes}
			}
			return nil
		}
	}
	return &rollback.UnstableError{Paths: []string{rel}}
}

// cache is for the defect that trusts it.
var cache = map[string]string{}

const (
	wholeFile = 16 << 20 // above, a list of pieces
	piece     = 8 << 20
)

// content stores what the file holds now.
func (sc *scanner) content(f *os.File, e *entry, listed int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > wholeFile {
		return sc.pieces(f, e, info.Size())
	}
	var in io.Reader = f
	if sc.d == listedSize {
		in = io.LimitReader(f, listed)
	}
	if sc.d == noSecondStat && sc.store && !sc.safety {
		in = &slowReader{f: f, last: info.Size() - 1}
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	e.Size = int64(len(data))
	e.Data, err = sc.keep(data)
	return err
}

func (sc *scanner) pieces(f *os.File, e *entry, size int64) error {
	list := map[int64]string{}
	for at := int64(0); at < size; {
		data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		if err != nil {
			return err
		}
		at = data / piece * piece
		buffer := make([]byte, piece)
		n, err := f.ReadAt(buffer, at)
		if err != nil && err != io.EOF {
			return err
		}
		if list[at], err = sc.keep(bytes.TrimRight(buffer[:n], "\x00")); err != nil {
			return err
		}
		at += piece
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	e.Size = size
	e.Data, err = sc.keep(text)
	return err
}

func (sc *scanner) keep(data []byte) (string, error) {
	if !sc.store || sc.d == manifestFirst {
		if sc.d == manifestFirst {
			sc.held = append(sc.held, data)
		}
		return fmt.Sprintf("%x", sha256.Sum256(data)), nil
	}
	if sc.d == fullBuffer {
		data = data[:min(len(data), 1<<20)]
	}
	name, added, err := sc.put("blobs", data)
	sc.c.Added += added
	return name, err
}
