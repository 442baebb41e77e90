// SPDX-License-Identifier: Apache-2.0

package allowlist

import "errors"

// exchangeByLink swaps two files where the kernel has no exchange: afterwards a names what b named, and b what a named.
// The name b is never absent: a crash leaves it old or new, and at most a second name of the old file, which OpenTree
// sweeps. File systems without hard links cannot do it.
func exchangeByLink(a, b string, link, rename func(from, to string) error, remove func(string) error) error {
	spare := tempName()
	if err := link(b, spare); err != nil {
		return err
	}
	if err := rename(a, b); err != nil {
		return errors.Join(err, remove(spare))
	}
	if err := rename(spare, a); err != nil {
		return err
	}
	// A rename between two names of one file does nothing and keeps both. It happens only if somebody put the old file
	// at b again meanwhile; then the spare name is one too many.
	if err := remove(spare); err != nil && !isAbsent(err) {
		return err
	}
	return nil
}

// placeByLink renames without ever replacing: link fails where the new name exists.
func placeByLink(from, to string, link func(from, to string) error, remove func(string) error) error {
	if err := link(from, to); err != nil {
		return err
	}
	return remove(from)
}
