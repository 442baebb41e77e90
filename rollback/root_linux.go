// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/fsys"
	"github.com/evoseal/containment/rollback/internal/object"
)

// Making staging changes the root before the commit: its time, and its mode if its owner may not write to it. Both
// have to be right again after a restore that came to nothing. The name of staging tells the time. Where that is not
// enough, a note in the store tells both: before the mode is changed, and before the name goes.

// rootNote is the note.
type rootNote struct {
	Mode uint32 `json:"mode"`
	Sec  int64  `json:"sec"`
	Nsec uint32 `json:"nsec"`
}

func notePath(treeKey string) string { return treesDir + "/" + treeKey + "/note" }

func (r *restorer) noteRoot(root *object.Entry) error {
	data, err := json.Marshal(rootNote{Mode: root.Mode, Sec: root.Sec, Nsec: root.Nsec})
	if err != nil {
		return err
	}
	return r.s.writeFile(notePath(r.target.key), data)
}

// openRoot gives the owner all rights on the root.
func (r *restorer) openRoot() error {
	mode := r.found.Root.Mode
	if mode&0o700 == 0o700 {
		return nil
	}
	if err := r.noteRoot(&r.found.Root.Entry); err != nil {
		return err
	}
	r.step("opened")
	return fsys.Retry(func() error { return unix.Fchmod(r.target.fd, mode|0o700) })
}

// closeRoot does what a note says, if there is one.
func (r *restorer) closeRoot() error {
	name := notePath(r.target.key)
	data, err := r.s.dir.ReadFile(name, 1<<10)
	if errors.Is(err, errNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	note, err := decodeStrict[rootNote](data)
	if err != nil || note.Mode > 0o7777 || note.Nsec > 999_999_999 {
		return &CorruptError{Object: name, Why: "not a note on a root"}
	}
	if err := fsys.Retry(func() error { return unix.Fchmod(r.target.fd, note.Mode) }); err != nil {
		return err
	}
	if err := fsys.SetTime(r.target.fd, note.Sec, note.Nsec); err != nil {
		return err
	}
	if r.s.sync() {
		if err := r.syncAll([]int{r.target.fd}); err != nil {
			return err
		}
	}
	r.step("closed")
	if err := r.forgetRoot(); err != nil {
		return err
	}
	return r.s.dir.SyncDir(parentOf(name))
}

// forgetRoot drops the note when the root has what the checkpoint says. The flush that follows the removal of the
// journal covers it.
func (r *restorer) forgetRoot() error { return r.s.dir.Remove(notePath(r.target.key)) }

// need is what staging takes: bytes in blocks of the given size, and inodes.
func (r *restorer) need(p *plan, block int64) (bytes, entries int64, err error) {
	entries = int64(len(p.make)) + 1
	bytes = entries * block
	for i := range p.put {
		if p.put[i].partner != "" {
			continue
		}
		size, err := r.dataSize(&p.put[i].want)
		if err != nil {
			return 0, 0, err
		}
		// One block more for what a long link or attributes take. Sums beyond any disk must not turn negative.
		bytes = min(bytes+(min(size, math.MaxInt64/4)+2*block-1)/block*block, math.MaxInt64/4)
		entries++
	}
	return bytes, entries, nil
}

// dataSize is the size of a file without its holes.
func (r *restorer) dataSize(e *object.Entry) (size int64, err error) {
	if e.Kind != object.File || e.Data.Type != object.Chunks {
		return e.Size, nil
	}
	chunks, err := r.s.chunks(e)
	for _, c := range chunks {
		if !c.Hole {
			size += c.Len
		}
	}
	return size, err
}

// preflight refuses what cannot end well, before the first write.
func (r *restorer) preflight(p *plan) error {
	st, err := fsys.Statfs(r.target.fd)
	if err != nil {
		return err
	}
	bytes, entries, err := r.need(p, max(st.Bsize, 512))
	if err != nil {
		return corrupt(r.id, err)
	}
	bytes += bytes / 20
	entries += entries / 20
	free := int64(st.Bavail) * st.Bsize //nolint:gosec // no file system has 2^63 bytes
	if bytes > free {
		return fmt.Errorf("%w: the tree's file system has %d bytes free and %d are needed", ErrNoSpace, free, bytes)
	}
	// Some file systems make inodes as they need them and report none.
	if st.Files > 0 && entries > int64(st.Ffree) {
		return fmt.Errorf("%w: the tree's file system has %d inodes free and %d are needed", ErrNoSpace, st.Ffree, entries)
	}
	return r.checkOwners(p)
}
