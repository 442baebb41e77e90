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
