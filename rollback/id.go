// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// ID names a checkpoint: the SHA-256 of its manifest.
type ID [32]byte

// IsZero reports whether the ID names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// String returns 64 lower-case hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText writes what [ParseID] reads.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is [ParseID].
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// ParseID reads 64 lower-case hexadecimal digits and accepts nothing else: an ID becomes a file name.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*len(id) || strings.ToLower(s) != s {
		return ID{}, fmt.Errorf("rollback: %q is not an ID: want %d lower-case hexadecimal digits", s, 2*len(id))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("rollback: %q is not an ID: %w", s, err)
	}
	return id, nil
}

// Digest sums up a tree. Two trees with equal Content have the same names, kinds, execute bits, bytes and link targets;
// with equal Tree they are equal in everything that a checkpoint holds, modes and times included.
type Digest struct{ Tree, Content [32]byte }
