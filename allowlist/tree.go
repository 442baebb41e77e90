// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

var (
	// ErrLocked means that another Tree holds the directory, in this process or in another one.
	ErrLocked = errors.New("the tree is open elsewhere")
	// ErrApplied means that a plan was applied, or a receipt reverted, before. Plan again.
	ErrApplied = errors.New("it was used before")
)

// defaultMaxRead is TreeOptions.MaxRead where that is 0.
const defaultMaxRead = 16 << 20

// TreeOptions are the options of OpenTree. The zero value is usable.
type TreeOptions struct {
	// Sync makes Apply and Revert flush files and directories before they return, so that the edits survive a power
	// cut.
	Sync bool
	// Full makes Apply compare the whole tree before and after, with digests, instead of the protected names only.
	Full bool
	// MaxRead is the size in bytes above which a file is not read; default 16 MiB.
	MaxRead int64
	// Core are paths of the host, such as the store of package rollback, that no edit may touch if they lie inside the
	// tree.
	Core []string
	// Logger receives one record for each decision and each set that was applied; default none.
	Logger *slog.Logger

	portable bool                    // tests: take the portable walk
	hook     func(step string) error // tests: fail at a step of Apply
}

// Tree is a directory that is held open and locked. It is safe for use by several goroutines, one at a time.
type Tree struct {
	mu       sync.Mutex
	lock     *os.File // holds the lock; the base of the walk on Linux
	osroot   *os.Root // the base of the portable walk
	root     dir
	path     string // absolute, without links, as it was when the tree was opened
	self     meta   // of the root: what a name must lead to, to be the tree
	portable bool
	opts     TreeOptions
	log      *slog.Logger
	core     []Rule   // section "the guard protects itself"
	gitDirs  []string // git directories inside the tree, by path
	policies map[*Policy]*treePolicy
	closed   bool
}

// OpenTree opens a directory, locks it against any other Tree, and removes what an Apply that was killed left over. It
// fails with ErrLocked if the directory is open elsewhere, and with errors.ErrUnsupported on Windows.
func OpenTree(name string, o *TreeOptions) (*Tree, error) {
	t := &Tree{policies: map[*Policy]*treePolicy{}}
	if o != nil {
		t.opts = *o
	}
	if t.opts.MaxRead <= 0 {
		t.opts.MaxRead = defaultMaxRead
	}
	t.log = t.opts.Logger
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if err := t.open(name); err != nil {
		return nil, errors.Join(fmt.Errorf("allowlist: open tree: %w", err), t.Close())
	}
	return t, nil
}

func (t *Tree) open(name string) (err error) {
	if t.lock, err = openLocked(name); err != nil {
		return err
	}
	if err := t.openWalk(name); err != nil {
		return err
	}
	if err := t.locate(name); err != nil {
		return err
	}
	if err := t.ownPaths(); err != nil {
		return err
	}
	return t.sweep()
}

// locate notes where the tree is. Names that the host gives later are compared with this place: by then the working
// directory may be another one, or the name may lead elsewhere.
func (t *Tree) locate(name string) error {
	path, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	if t.path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	info, err := t.lock.Stat()
	if err != nil {
		return err
	}
	if t.self, err = metaOfInfo(info); err != nil {
		return err
	}
	return t.inPlace()
}

// inPlace fails if the tree is no longer where it was opened.
func (t *Tree) inPlace() error {
	locked, err := t.lock.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Lstat(t.path); err != nil || !os.SameFile(locked, now) {
		return fmt.Errorf("%+q is not the tree that is open (any more): open it again", t.path)
	}
	return nil
}

// openWalk chooses how the tree is walked. A host that refuses openat2 gets the portable walk, never a plain open.
func (t *Tree) openWalk(name string) (err error) {
	if !t.opts.portable {
		if t.root, err = openNative(t.lock); err == nil {
			return nil
		}
		t.log.LogAttrs(context.Background(), slog.LevelWarn, "allowlist: openat2 refused, portable walk",
			slog.Any("error", err))
	}
	t.portable = true
	if t.osroot, err = os.OpenRoot(name); err != nil {
		return err
	}
	locked, err := t.lock.Stat()
	if err != nil {
		return err
	}
	walked, err := t.osroot.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(locked, walked) {
		return fmt.Errorf("%+q was exchanged while it was opened", name)
	}
	t.root, err = openPortable(t.osroot)
	return err
}

// Close gives the lock back. Plans and receipts of the tree fail from then on, with fs.ErrClosed.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	var err error
	if t.osroot != nil {
		err = t.osroot.Close()
	}
	if t.lock != nil {
		err = errors.Join(err, t.lock.Close())
	}
	return err
}

// use takes the tree for one operation.
func (t *Tree) use() (release func(), err error) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, fmt.Errorf("allowlist: tree: %w", fs.ErrClosed)
	}
	return t.mu.Unlock, nil
}

// ReadFile reads a regular file of the tree. The error matches fs.ErrNotExist if there is none, and a Code if the path
// is not canonical, a link is on the way or at its end, or the file is larger than TreeOptions.MaxRead.
func (t *Tree) ReadFile(path string) ([]byte, error) {
	if code, detail := checkPath(path); code != "" {
		return nil, fmt.Errorf("allowlist: read %+q: %w: %s", path, code, detail)
	}
	release, err := t.use()
	if err != nil {
		return nil, err
	}
	defer release()
	content, _, err := t.readPath(path)
	if err != nil {
		return nil, fmt.Errorf("allowlist: read %+q: %w", path, err)
	}
	return content, nil
}

// readPath reads a file by its path from the root, resolved anew.
func (t *Tree) readPath(path string) ([]byte, meta, error) {
	parent, base := split(path)
	d, err := t.openDir(parent)
	if err != nil {
		return nil, meta{}, err
	}
	content, m, err := readIn(d, base, t.opts.MaxRead)
	return content, m, errors.Join(err, d.close())
}

// openDir opens a directory by its path; "" is the root.
func (t *Tree) openDir(path string) (dir, error) {
	if path == "" {
		path = "."
	}
	return t.root.open(path)
}

// readIn reads a regular file, of at most limit bytes.
func readIn(d dir, name string, limit int64) ([]byte, meta, error) {
	f, m, err := d.openFile(name)
	if err != nil {
		return nil, m, err
	}
	defer f.Close()
	if m.size > limit {
		return nil, m, &refusal{ErrTooLarge, fmt.Sprintf("%d bytes, more than the %d that are read", m.size, limit)}
	}
	// One byte more than allowed shows a file that grows while it is read.
	content := make([]byte, 0, m.size+1)
	content, err = appendAll(content, io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = &refusal{ErrTooLarge, fmt.Sprintf("more than the %d bytes that are read", limit)}
	}
	return content, m, err
}

// appendAll is io.ReadAll into a buffer that already has the right size.
func appendAll(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}
