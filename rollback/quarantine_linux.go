// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/internal/scratch"
)

// quarantineList is a file in each quarantine: one JSON object per line and entry. It is written before the entries
// come, so that none is there without a line; a line without an entry, or with a part of one, is what a crash left.
const quarantineList = "list.jsonl"

// quarantineLine is where an entry came from.
type quarantineLine struct {
	Name string `json:"name"`                 // in the quarantine
	Tree string `json:"tree"`                 // the root
	Path string `json:"path"`                 // below it
	Raw  []byte `json:"path_bytes,omitempty"` // the path, in base64, if it is not valid UTF-8
	Why  string `json:"why"`
}

// quarantine moves what the store does not have out of staging. What cannot be moved stays there, is reported, and
// keeps the staging directory.
func (r *restorer) quarantine(ctx context.Context, list []stranger) error {
	dir := quarantineDir + "/" + txid(r.journal.Staging)
	q, names, err := r.openQuarantine(dir, list)
	if err != nil {
		r.s.log.Error("rollback: no quarantine, everything stays in the tree", "error", err)
		for _, s := range list {
			r.stays(s, err)
		}
		return nil
	}
	defer func() { _ = q.Close() }()
	var copied []stranger
	for i, s := range list {
		where := filepath.Join(r.s.path, dir, names[i])
		r.step("quarantine")
		isCopy, err := r.toQuarantine(ctx, s, int(q.Fd()), names[i])
		if err != nil {
			if isCopy && !errors.Is(err, unix.EEXIST) { // or half of one
				err = errors.Join(err, scratch.Remove(ctx, inDir(int(q.Fd()), names[i])))
			}
			r.stays(s, err)
			continue
		}
		if isCopy {
			copied = append(copied, s)
		}
		r.out.Quarantined = append(r.out.Quarantined, Quarantined{Path: s.path, Where: where, Why: s.why})
	}
	if err := r.flushQuarantine(int(q.Fd()), len(copied) > 0); err != nil { // then nothing is believed to have arrived
		return err
	}
	for _, s := range copied {
		if err := scratch.Remove(ctx, inDir(r.staging, s.name)); err != nil {
			return err
		}
	}
	return nil
}

func (r *restorer) flushQuarantine(q int, data bool) error {
	switch {
	case !r.s.sync():
		return nil
	case data:
		return r.syncFS(q)
	}
	return r.syncAll([]int{q})
}

// inDir is a path to a name in an open directory that no exchange of directories leads elsewhere.
func inDir(dir int, name string) string { return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + name }

func (r *restorer) stays(s stranger, err error) {
	r.out.Quarantined = append(r.out.Quarantined, Quarantined{
		Path: s.path, Why: s.why + "; it could not be moved out of the tree: " + err.Error(),
		Where: filepath.Join(r.target.path, keptPrefix+txid(r.journal.Staging), s.name),
	})
}

// openQuarantine makes the directory and writes the list. Names that a crash left there are not used again.
func (r *restorer) openQuarantine(dir string, list []stranger) (*os.File, []string, error) {
	if err := r.s.dir.Mkdir(dir); err != nil {
		return nil, nil, err
	}
	q, err := r.s.dir.OpenToRead(dir)
	if err != nil {
		return nil, nil, err
	}
	names, lines := make([]string, len(list)), []byte(nil)
	for i, s := range list {
		names[i] = s.name
		for n := 1; ; n++ {
			_, err := fsys.Lstat(int(q.Fd()), names[i])
			if err == unix.ENOENT {
				break
			}
			if err != nil {
				return nil, nil, errors.Join(err, q.Close())
			}
			names[i] = s.name + "." + strconv.Itoa(n)
		}
		line := quarantineLine{Name: names[i], Tree: r.target.path, Path: strings.ToValidUTF8(s.path, "\ufffd"), Why: s.why}
		if !utf8.ValidString(s.path) {
			line.Raw = []byte(s.path)
		}
		text, err := json.Marshal(line)
		if err != nil {
			return nil, nil, errors.Join(err, q.Close())
		}
		lines = append(append(lines, text...), '\n')
	}
	f, err := r.s.dir.Append(dir + "/" + quarantineList)
	if err == nil {
		_, err = f.Write(lines)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return nil, nil, errors.Join(err, q.Close())
	}
	return q, names, nil
}

// reportMoved notes what this restore had moved to quarantine before it was interrupted: it is said once at least.
func (r *restorer) reportMoved() {
	dir := quarantineDir + "/" + txid(r.journal.Staging)
	data, err := r.s.dir.ReadFile(dir+"/"+quarantineList, maxJournal)
	if err != nil {
		if !errors.Is(err, errNotExist) {
			r.s.log.Warn("rollback: the list of a quarantine cannot be read", "quarantine", r.s.join(dir), "error", err)
		}
		return
	}
	for text := range bytes.Lines(data) {
		var line quarantineLine
		if json.Unmarshal(text, &line) != nil || !filepath.IsLocal(line.Name) {
			continue // what a crash left of a line
		}
		if _, err := r.s.dir.Lstat(dir + "/" + line.Name); err != nil {
			continue
		}
		path := line.Path
		if line.Raw != nil {
			path = string(line.Raw)
		}
		r.out.Quarantined = append(r.out.Quarantined,
			Quarantined{Path: path, Where: filepath.Join(r.s.path, dir, line.Name), Why: line.Why})
	}
}

// toQuarantine renames, or copies where the store is on another file system. With an error and copied there can be half
// a copy.
func (r *restorer) toQuarantine(ctx context.Context, s stranger, q int, name string) (copied bool, err error) {
	err = r.rename("rename", fsys.Place, r.staging, s.name, q, name)
	if err == unix.EACCES {
		err = moveClosedDir(r.staging, s.name, q, name)
	}
	if err != unix.EXDEV {
		return false, err
	}
	st, err := fsys.Lstat(r.staging, s.name)
	if err != nil {
		return false, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return true, r.copyFile(s.name, q, name, &st)
	case unix.S_IFLNK:
		target, err := readLink(r.staging, s.name)
		if err != nil {
			return false, err
		}
		return true, fsys.Retry(func() error { return unix.Symlinkat(target, q, name) })
	case unix.S_IFDIR:
		if err := unix.Mkdirat(q, name, 0o700); err != nil {
			return false, err
		}
		all := scratch.Options{MaxBytes: math.MaxInt64, MaxFiles: math.MaxInt64}
		_, err := scratch.Copy(ctx, inDir(r.staging, s.name), inDir(q, name), all)
		return true, err
	}
	return false, errors.New(fsys.Kind(uint32(st.Mode)) + " cannot be copied to another file system")
}

// moveClosedDir moves a directory that its owner may not write to. The kernel wants that right, since ".." changes with
// the move. The mode is put back afterwards.
func moveClosedDir(fromDir int, from string, toDir int, to string) error {
	fd, err := fsys.OpenBeneath(fromDir, from, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return unix.EACCES
	}
	defer unix.Close(fd)
	st, err := fsys.Fstat(fd)
	if err != nil {
		return err
	}
	if err := fsys.ChmodHandle(fd, uint32(st.Mode)&0o7777|0o700); err != nil {
		return err
	}
	err = fsys.Place(fromDir, from, toDir, to)
	if back := fsys.ChmodHandle(fd, uint32(st.Mode)&0o7777); err == nil {
		err = back
	}
	return err // as it is: EXDEV and the like are compared
}

// copyFile copies bytes, permissions and time. Set-id bits stay behind: nothing in a store is to be run.
func (r *restorer) copyFile(from string, q int, to string, st *unix.Stat_t) error {
	in, err := fsys.OpenBeneath(r.staging, from, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	src := os.NewFile(uintptr(in), from)
	defer func() { _ = src.Close() }()
	out, err := fsys.OpenBeneath(q, to, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	dst := os.NewFile(uintptr(out), to)
	defer func() { _ = dst.Close() }()
	if err := r.s.try("write"); err != nil {
		return err
	}
	if _, err := io.Copy(dst, src); err != nil {
		return err
	}
	if err := fsys.ChmodHandle(out, uint32(st.Mode)&0o777); err != nil {
		return err
	}
	return fsys.SetTime(out, st.Mtim.Sec, uint32(st.Mtim.Nsec))
}
