// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"encoding/hex"
	"fmt"
)

// Fingerprint identifies a variant: a SHA-256 of what makes it what it is. FingerprintTree makes one of a directory; a
// host may bring its own. The zero value is none.
type Fingerprint [32]byte

// IsZero reports whether there is none.
func (f Fingerprint) IsZero() bool { return f == Fingerprint{} }

// String returns the fingerprint in hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// MarshalText writes hexadecimal digits.
func (f Fingerprint) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, f[:]), nil }

// UnmarshalText reads hexadecimal digits.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(f)) {
		return fmt.Errorf("runaway: %q is not a fingerprint", text)
	}
	_, err := hex.Decode(f[:], text)
	return err
}
