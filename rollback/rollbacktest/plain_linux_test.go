// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/rollback"
)

// plain is a second store, so simple that its correctness can be seen: a file per content, a list of entries per
// directory, one big lock, the whole tree read each time. It passes the suite, which shows that the suite demands
// nothing that only one store can do; and a defect in it shows that the suite notices.
type plain struct {
	dir string
	o   rollback.Options
	d   defect
}

// rawName is bytes that JSON keeps as text, one character each.
type rawName []byte

func (n rawName) MarshalJSON() ([]byte, error) {
	text := make([]rune, len(n))
	for i, b := range n {
		text[i] = rune(b)
	}
	return json.Marshal(string(text))
}

func (n *rawName) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	for _, r := range text {
		*n = append(*n, byte(r))
	}
	return nil
}

// entry is one name in a directory.
type entry struct {
	Name      rawName
	Mode      uint32
	UID, GID  uint32
	Sec, Nsec int64
	Data      string // content of a file, or list of a directory: name of a blob
	Size      int64
	Target    []byte
	Group     []byte
	Xattrs    map[string][]byte
}

func (e entry) kind() uint32 { return e.Mode & unix.S_IFMT }

// manifest is what a checkpoint's ID is the hash of.
type manifest struct {
	Checkpoint rollback.Checkpoint // without ID and Pinned
	Root       entry
	Exclude    []string
	Xattrs     bool
	Owner      bool
}

func openPlain(d defect) Open {
	return func(dir string, o *rollback.Options) (Subject, error) {
		p := &plain{dir: dir, d: d}
		if o != nil {
			p.o = *o
		}
		if p.o.Exclude == nil {
			p.o.Exclude = rollback.DefaultExclude()
		}
		for limit, value := range map[*int64]int64{&p.o.Limits.Files: 1e6, &p.o.Limits.Bytes: 32 << 30,
			&p.o.Limits.FileSize: 2 << 30} {
			if *limit == 0 {
				*limit = value
			}
		}
		if p.o.Limits.Depth == 0 {
			p.o.Limits.Depth = 512
		}
		for _, sub := range []string{"blobs", "ckpt", "trees", "pins", "quarantine"} {
			if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
}

// lock takes the one lock that there is. The kernel drops it when the process dies.
func (p *plain) lock(ctx context.Context) (unlock func(), err error) {
	if p.d == lockFile {
		return p.lockByName(ctx)
	}
	return flock(ctx, p.dir+"/lock", os.O_RDWR|os.O_CREATE)
}

func flock(ctx context.Context, path string, flags int) (unlock func(), err error) {
	f, err := os.OpenFile(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return func() { _ = f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// lockByName is the defect that no crash survives. It does not wait for long: nobody will remove the file.
func (p *plain) lockByName(ctx context.Context) (unlock func(), err error) {
	for range 300 {
		f, err := os.OpenFile(p.dir+"/lock", os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return func() { _, _ = f.Close(), os.Remove(p.dir+"/lock") }, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		time.Sleep(time.Millisecond)
	}
	return nil, errors.New("the lock file exists")
}

// put stores bytes under their hash, whole or not at all.
func (p *plain) put(sub string, data []byte) (name string, added int64, err error) {
	sum := sha256.Sum256(data)
	name = hex.EncodeToString(sum[:])
	if p.d == storesAgain && sub == "blobs" {
		name += fmt.Sprint("-", time.Now().UnixNano())
	}
	path := p.dir + "/" + sub + "/" + name
	if _, err := os.Lstat(path); err == nil {
		return name, 0, nil
	}
	if sub == "blobs" && p.o.Codec == rollback.CodecS2 {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.BestSpeed)
		if _, werr := w.Write(data); err != nil || werr != nil || w.Close() != nil {
			return "", 0, errors.Join(err, werr)
		}
		data = append([]byte("z"), b.Bytes()...)
	} else {
		data = append([]byte("r"), data...)
	}
	return name, int64(len(data)), p.write(path, data)
}

// write makes a file that is whole under its name.
func (p *plain) write(path string, data []byte) error {
	mode := fs.FileMode(0o600)
	if p.d == executableStore {
		mode = 0o755
	}
	tmp := fmt.Sprint(p.dir, "/tmp-", os.Getpid(), "-", time.Now().UnixNano())
	err := os.WriteFile(tmp, data, mode)
	if p.d == ignoresWriteErrors {
		err = nil
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return full(err)
}

// full gives what a full disk answers its type.
func full(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EFBIG) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w", rollback.ErrNoSpace, err)
	}
	return err
}

// get reads bytes by their hash.
func (p *plain) get(sub, name string) ([]byte, error) {
	bad := func(why string) error { return &rollback.CorruptError{Object: sub + "/" + name, Why: why} }
	data, err := os.ReadFile(p.dir + "/" + sub + "/" + name)
	if err != nil || len(data) == 0 {
		return nil, bad(fmt.Sprint("cannot be read: ", err))
	}
	kind, data := data[0], data[1:]
	if kind == 'z' {
		if data, err = io.ReadAll(flate.NewReader(bytes.NewReader(data))); err != nil {
			return nil, bad(err.Error())
		}
	} else if kind != 'r' && p.d != trustsStore {
		return nil, bad("unknown form")
	}
	sum := sha256.Sum256(data)
	if hash, _, _ := strings.Cut(name, "-"); hex.EncodeToString(sum[:]) != hash && p.d != trustsStore {
		return nil, bad("has another hash")
	}
	return data, nil
}

// seal makes the checkpoint exist.
func (p *plain) seal(m manifest) (rollback.Checkpoint, error) {
	c := &m.Checkpoint
	c.Time = time.Now()
	all, err := p.all()
	if err != nil {
		return rollback.Checkpoint{}, err
	}
	for _, other := range all { // newest first
		if c.Seq == 0 {
			c.Seq = other.Checkpoint.Seq + 1
		}
		if other.Checkpoint.Tree == c.Tree && c.Parent.IsZero() && p.d != forgetsParent {
			c.Parent = other.Checkpoint.ID
		}
	}
	if c.Seq == 0 {
		c.Seq = 1
	}
	text, err := json.Marshal(m)
	if err != nil {
		return rollback.Checkpoint{}, err
	}
	name, added, err := p.put("ckpt", text)
	if err != nil {
		return rollback.Checkpoint{}, err
	}
	c.Added += added
	c.ID, err = rollback.ParseID(name)
	return *c, err
}

func (p *plain) manifest(id rollback.ID) (m manifest, err error) {
	if _, err := os.Lstat(p.dir + "/ckpt/" + id.String()); err != nil {
		return m, fmt.Errorf("%w: %v", rollback.ErrNotFound, id)
	}
	text, err := p.get("ckpt", id.String())
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, &rollback.CorruptError{ID: id, Object: "ckpt/" + id.String(), Why: err.Error()}
	}
	m.Checkpoint.ID = id
	if why, err := os.ReadFile(p.dir + "/pins/" + id.String()); err == nil {
		m.Checkpoint.Pinned = string(why)
	}
	return m, nil
}

// all returns every manifest, newest first.
func (p *plain) all() (list []manifest, err error) {
	names, err := os.ReadDir(p.dir + "/ckpt")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		id, err := rollback.ParseID(name.Name())
		if err != nil {
			return nil, &rollback.CorruptError{Object: "ckpt/" + name.Name(), Why: err.Error()}
		}
		m, err := p.manifest(id)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b manifest) int { return int(b.Checkpoint.Seq) - int(a.Checkpoint.Seq) })
	return list, nil
}

func (p *plain) Checkpoint(ctx context.Context, path string, meta rollback.Meta) (rollback.Checkpoint, error) {
	leave, err := p.enter(ctx, path, rollback.ID{})
	if err != nil {
		return rollback.Checkpoint{}, err
	}
	defer leave()
	if _, err := os.Lstat(p.journal(path)); err == nil {
		return rollback.Checkpoint{}, rollback.ErrPending
	}
	return p.take(ctx, path, meta, rollback.User, p.o.Exclude)
}

// take reads the tree and seals what it found.
func (p *plain) take(ctx context.Context, path string, meta rollback.Meta, kind rollback.Kind,
	exclude []string) (rollback.Checkpoint, error) {
	sc := p.scanner(ctx, path, exclude)
	sc.store, sc.safety = true, kind == rollback.Safety
	root, err := sc.scan()
	if err != nil {
		return rollback.Checkpoint{}, err
	}
	m := manifest{Root: root, Exclude: exclude, Xattrs: p.o.Xattrs, Owner: p.o.Owner, Checkpoint: sc.c}
	m.Checkpoint.Tree, m.Checkpoint.Meta, m.Checkpoint.Kind, m.Checkpoint.Parent = path, meta, kind, meta.Parent
	if p.d == manifestFirst {
		held := sc.held
		c, err := p.seal(m)
		time.Sleep(20 * time.Millisecond)
		for _, data := range held {
			if _, _, err := p.put("blobs", data); err != nil {
				return c, err
			}
		}
		return c, err
	}
	return p.seal(m)
}

// sysStat is the part of a stat that an entry is made of.
func sysStat(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }
