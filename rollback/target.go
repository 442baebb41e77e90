// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"

	"github.com/evoseal/containment/rollback/internal/object"
	"github.com/evoseal/containment/rollback/internal/scan"
)

// purpose says what a tree is opened for.
type purpose uint8

const (
	forCheckpoint purpose = iota // registers the tree
	forRestore                   // the tree must be registered, or be an empty one of Options.Roots
	forPlan                      // as forRestore, but nothing is written: an empty root stays unregistered
	forDigest                    // any tree that could be registered
	forRecover                   // registered; a journal is no obstacle
)

// registration is the marker of a tree, trees/<key>/root. It lies in the store, where nothing that runs in the tree can
// reach it.
type registration struct {
	Version int    `json:"version"`
	Path    []byte `json:"path"` // of the root, without links; bytes, since a name need not be text
	Inode   uint64 `json:"inode"`
	Born    int64  `json:"born"`   // birth time in ns, since inode numbers are used again; 0: not known
	Device  uint64 `json:"device"` // changes between boots
	Boot    string `json:"boot"`
	FS      int64  `json:"fs"`    // magic number of the file system
	Named   bool   `json:"named"` // made by a restore into one of Options.Roots
}

const (
	registrationVersion = 1
	registrationLimit   = 32 << 10 // bytes; a path has at most 4,096, in base64
)

// key names the tree in the store: by where it is and by what it is, so that another directory at the same place, or
// the same one moved elsewhere, is another tree.
func (r *registration) key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "rollback tree\x00%s\x00%d\x00%d", r.Path, r.Inode, r.Born))
	return hex.EncodeToString(sum[:16])
}

func registrationPath(key string) string { return path.Join(treesDir, key, "root") }

// trees returns the keys of all registered trees.
func (s *Store) trees() ([]string, error) {
	entries, err := s.dir.OpenToRead(treesDir)
	if err != nil {
		return nil, fmt.Errorf("rollback: %s: %w", s.path, err)
	}
	defer func() { _ = entries.Close() }()
	names, err := entries.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("rollback: %s: %w", s.path, err)
	}
	var keys []string
	for _, name := range names {
		if !isHex(name, 32) {
			continue
		}
		// A tree whose registration was interrupted has a directory and no marker: it never had a checkpoint.
		if _, err := s.dir.Stat(registrationPath(name)); err == nil {
			keys = append(keys, name)
		}
	}
	return keys, nil
}

// registered reads the marker of a tree. A missing one is an error that matches fs.ErrNotExist.
func (s *Store) registered(key string) (registration, error) {
	name := registrationPath(key)
	data, err := s.dir.ReadFile(name, registrationLimit)
	if err != nil {
		return registration{}, fmt.Errorf("rollback: %w", err)
	}
	if newer(data, registrationVersion) {
		return registration{}, fmt.Errorf("rollback: %s: %w", s.join(name), ErrFormat)
	}
	r, err := decodeStrict[registration](data)
	if err != nil || r.Version != registrationVersion || r.key() != key {
		return registration{}, &CorruptError{Object: name, Why: fmt.Sprintf("not the marker of this tree (%v)", err)}
	}
	return r, nil
}

// treeRoot returns the path of a registered tree.
func (s *Store) treeRoot(key string) (string, error) {
	r, err := s.registered(key)
	return string(r.Path), err
}

// register writes the marker.
func (s *Store) register(r registration) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("rollback: %w", err)
	}
	if err := s.dir.Mkdir(path.Join(treesDir, r.key())); err != nil {
		return fmt.Errorf("rollback: register %q: %w", r.Path, s.noSpace(err))
	}
	return s.writeFile(registrationPath(r.key()), data)
}

// digestOf sums up a scanned tree as a manifest does.
func digestOf(root *scan.Node) Digest {
	return Digest{Tree: object.RootDigest(root.Entry), Content: root.Content}
}
