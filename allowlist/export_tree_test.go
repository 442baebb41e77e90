// SPDX-License-Identifier: Apache-2.0

package allowlist

import "io"

// ForcePortable makes OpenTree take the walk that systems without openat2 have.
func ForcePortable(o *TreeOptions) { o.portable = true }

// SetHook makes f run before each step of Apply and Revert; its error fails the step.
func SetHook(o *TreeOptions, f func(step string) error) { o.hook = f }

// Rehook replaces the hook of an open tree.
func Rehook(t *Tree, f func(step string) error) { t.opts.hook = f }

// SumFile digests what is left of a reader that should hold this many bytes.
func SumFile(f io.Reader, size int64) (Digest, error) { return sumFile(f, size) }

// IsPortable tells which walk a tree took.
func IsPortable(t *Tree) bool { return t.portable }

// CountChangedLines is what the limit changed_lines counts.
func CountChangedLines(old, content []byte) int {
	return changedLines(change{Edit: Edit{Op: Modify, Content: content}, old: old, read: true}, 1<<30)
}
