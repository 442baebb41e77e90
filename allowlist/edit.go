// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Digest is a SHA-256 digest of a file's content. The zero value means "none".
type Digest [sha256.Size]byte

// Sum returns the digest of content.
func Sum(content []byte) Digest { return sha256.Sum256(content) }

// String returns "sha256:" and hexadecimal digits.
func (d Digest) String() string { return "sha256:" + hex.EncodeToString(d[:]) }

// Op is what an edit does to a path. The zero value is invalid.
type Op uint8

const (
	// Create makes a file that must not exist.
	Create Op = iota + 1
	// Modify replaces the content of a file that must exist and have the content of Edit.Base.
	Modify
	// Delete removes such a file.
	Delete
)

// String returns the name as it stands in a policy file.
func (o Op) String() string {
	switch o {
	case Create:
		return "create"
	case Modify:
		return "modify"
	case Delete:
		return "delete"
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// Edit is one change: what is checked is what is written.
type Edit struct {
	Op      Op
	Path    string
	Content []byte // new bytes; nil for Delete
	Base    Digest // of the content that the edit was made for; required for Modify and Delete, zero for Create
}

// Replacement is the typed form of one search/replace block: Old must occur exactly once in the file.
type Replacement struct {
	Path     string
	Old, New []byte
}

// Source is where parsers read the files that a patch is made for. A *Tree is one. A file that does not exist is an error
// that matches fs.ErrNotExist. An error that matches a Code is a verdict on the path, and becomes a denial; any other error
// ends the parsing and is returned.
type Source interface {
	ReadFile(path string) ([]byte, error)
}
