// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"fmt"
	"strings"
)

const maxReference = 512

// checkReference refuses what no image can be called, so that a reference is never taken for an option or a line by those
// who read it later. What it names is the daemon's affair: digests and hosts with ports are as good as tags.
func checkReference(ref string) error {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case ref == "", len(ref) > maxReference:
		return fmt.Errorf("must have 1 to %d bytes", maxReference)
	case strings.HasPrefix(ref, "-"):
		return fmt.Errorf("%q must not begin with a dash", ref)
	case strings.ContainsFunc(ref, odd):
		return fmt.Errorf("%q must be printable ASCII without spaces", ref)
	}
	return nil
}

const (
	maxIdentifier  = 76 // of containerd
	alphanumerical = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

// identifier reports whether a text can be a namespace. It is also the name of a cgroup, so it must be no path.
func identifier(s string) bool {
	return s != "" && len(s) <= maxIdentifier && strings.Trim(s, alphanumerical+"-_.") == "" && strings.ContainsAny(s[:1], alphanumerical)
}
