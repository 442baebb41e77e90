// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// place is a directory in which groups are made, held open.
type place struct {
	dir     string
	fd      int
	version int
}

// Host says what this caller may use. It holds up to five descriptors until Close. It may be used by several goroutines.
type Host struct {
	ops    ops
	places []place
	at     [endOfControllers]int // index into places plus 1; 0 if the controller is missing
	why    [endOfControllers]string
	swap   bool // the machine has swap space
}

// Has reports whether groups have the controller.
func (h *Host) Has(c Controller) bool { return c < endOfControllers && h.at[c] > 0 }

// Any reports whether there is any controller, and thus anything to create.
func (h *Host) Any() bool { return len(h.places) > 0 }

// Version returns 1 or 2, or 0 if the controller is missing.
func (h *Host) Version(c Controller) int {
	if !h.Has(c) {
		return 0
	}
	return h.places[h.at[c]-1].version
}

// Reason says why the controller is missing and what would change that; it is "" if the controller is there.
func (h *Host) Reason(c Controller) string {
	if h.Has(c) || c >= endOfControllers {
		return ""
	}
	return h.why[c]
}

// Dirs returns the directories that Create makes for the name: what would have to be removed after a crash. It returns
// nil for a name that Create refuses.
func (h *Host) Dirs(name string) []string {
	b, err := base(name)
	if err != nil {
		return nil
	}
	dirs := make([]string, len(h.places))
	for i, p := range h.places {
		dirs[i] = path.Join(p.dir, b)
	}
	return dirs
}

// String prints one line per controller.
func (h *Host) String() string {
	var b strings.Builder
	for c := range endOfControllers {
		if h.Has(c) {
			fmt.Fprintf(&b, "%v: version %d in %s\n", c, h.Version(c), h.places[h.at[c]-1].dir)
		} else {
			fmt.Fprintf(&b, "%v: missing: %s\n", c, h.why[c])
		}
	}
	return b.String()
}

// Close releases the descriptors. Groups that exist stay usable, except that they cannot be removed.
func (h *Host) Close() error {
	for _, p := range h.places {
		unix.Close(p.fd)
	}
	h.places, h.at = nil, [endOfControllers]int{}
	return nil
}
