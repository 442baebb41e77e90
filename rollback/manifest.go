// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
	"unicode/utf8"

	"github.com/evoseal/containment/rollback/internal/object"
)

// manifest is the root of a checkpoint.
type manifest struct {
	Store   string // id of the store it was made in
	Seq     uint64
	Time    time.Time
	Kind    Kind
	Parent  ID
	TreeKey string
	Tree    string // path of the root
	// Root is the root directory as an entry of kind Dir without a name: its mode, owner, time and attributes, Data is the
	// tree object, Content the content digest.
	Root    object.Entry
	Exclude []string // the patterns that were in force; a restore uses these
	Limits  Limits   // the limits that were in force
	Owner   bool     // uid and gid are captured
	Xattrs  bool     // extended attributes are captured
	Meta    Meta

	Files, Dirs, Links int
	Bytes, Added       int64
	Skipped            object.Hash // of the Skipped object; zero: nothing was skipped
}

// digest of the tree: everything in Tree, content in Content.
func (m *manifest) digest() Digest {
	return Digest{Tree: object.RootDigest(m.Root), Content: m.Root.Content}
}

// What Meta may hold: it is for labels and scores.
const (
	maxValues    = 64
	maxMetaBytes = 4096
)

// checkMeta judges what a caller says about a checkpoint.
func checkMeta(m Meta) error {
	size, valid := len(m.Label), utf8.ValidString(m.Label)
	for k, v := range m.Values {
		size += len(k) + len(v)
		valid = valid && utf8.ValidString(k) && utf8.ValidString(v)
	}
	switch {
	case len(m.Values) > maxValues:
		return fmt.Errorf("rollback: Meta.Values has %d values, more than %d: %w", len(m.Values), maxValues, ErrTooLarge)
	case size > maxMetaBytes:
		return fmt.Errorf("rollback: Meta has %d bytes, more than %d: %w", size, maxMetaBytes, ErrTooLarge)
	case !valid:
		return fmt.Errorf("rollback: Meta is not valid UTF-8: %w", fs.ErrInvalid)
	}
	return nil
}

// check judges a manifest whose bytes are right: the store must not believe what this package never writes.
func (m *manifest) check() error {
	l := m.Limits
	switch {
	case !isHex(m.Store, 32):
		return errors.New("it names no store")
	case m.Seq == 0, m.Kind != User && m.Kind != Safety, m.Tree == "":
		return errors.New("it has no number, kind or tree")
	case !isTreeKey(m.TreeKey):
		return errors.New("its tree has no key")
	case m.Files < 0, m.Dirs < 0, m.Links < 0, m.Bytes < 0, m.Added < 0:
		return errors.New("it counts below zero")
	case l.Files <= 0, l.Bytes <= 0, l.FileSize <= 0, l.Depth <= 0:
		return errors.New("it has no limits")
	}
	if err := object.CheckRoot(m.Root); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	return checkMeta(m.Meta)
}

// isTreeKey reports whether a key can be the name of a directory in trees.
func isTreeKey(key string) bool { return isHex(key, 32) }
