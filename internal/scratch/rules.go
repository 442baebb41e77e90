// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
)

// rule is a node of the tree of named paths. Walking it beside the directories costs one map look-up per entry, and none
// at all where no path was named.
type rule struct {
	omit, sealed, readOnly bool
	next                   map[string]*rule
	guard                  bool // something below is sealed or read-only
}

// child returns the node of an entry, or nil.
func (r *rule) child(name string) *rule {
	if r == nil {
		return nil
	}
	return r.next[name]
}

// at returns the node of p and makes it if necessary; guard marks every node above.
func (r *rule) at(p string, guard bool) *rule {
	if p == "." {
		return r
	}
	for name := range strings.SplitSeq(p, "/") {
		r.guard = r.guard || guard
		if r.next == nil {
			r.next = map[string]*rule{}
		}
		if r.next[name] == nil {
			r.next[name] = &rule{}
		}
		r = r.next[name]
	}
	return r
}

// compile checks o, naming every fault, and returns the tree of its paths.
func (o *Options) compile() (*rule, error) {
	var all *multierror.Error
	fault := func(format string, args ...any) {
		all = multierror.Append(all, fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...))
	}
	if o.MaxBytes <= 0 || o.MaxFiles <= 0 {
		fault("MaxBytes %d and MaxFiles %d must be positive", o.MaxBytes, o.MaxFiles)
	}
	o.checkOwner(fault)
	for _, name := range o.OmitNames {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			fault("OmitNames %q: must be the name of one entry", name)
		}
	}
	root := &rule{}
	for _, p := range checkPaths("Omit", o.Omit, false, fault) {
		root.at(p, false).omit = true
	}
	for _, p := range checkPaths("Sealed", o.Sealed, false, fault) {
		root.at(p, true).sealed = true
	}
	for _, p := range checkPaths("Covered", o.Covered, false, fault) {
		root.at(p, false).sealed = true
	}
	for _, p := range checkPaths("ReadOnly", o.ReadOnly, true, fault) {
		root.at(p, true).readOnly = true
	}
	return root, all.ErrorOrNil()
}

// checkOwner refuses ids that chown would take for something else (-1 leaves the owner alone, larger ones wrap around)
// and the caller's own, which protects nothing.
func (o *Options) checkOwner(fault func(string, ...any)) {
	if o.Owner == nil {
		if len(o.Sealed)+len(o.ReadOnly) > 0 {
			fault("Sealed and ReadOnly need an Owner: the caller's own user changes modes back")
		}
		return
	}
	for _, id := range []int{o.Owner.UID, o.Owner.GID} {
		if id < 0 || int64(id) >= math.MaxUint32 {
			fault("Owner %d:%d: ids must lie between 0 and %d", o.Owner.UID, o.Owner.GID, uint32(math.MaxUint32-1))
		}
	}
	if len(o.Sealed)+len(o.ReadOnly) > 0 && o.Owner.UID == os.Geteuid() {
		fault("Sealed and ReadOnly need an Owner other than the caller, uid %d", o.Owner.UID)
	}
}

// checkPaths returns the clean forms of those paths that stay inside.
func checkPaths(field string, paths []string, whole bool, fault func(string, ...any)) []string {
	var clean []string
	for _, p := range paths {
		switch c := path.Clean(p); {
		case p == "" || strings.ContainsRune(p, 0) || !filepath.IsLocal(p) || slices.Contains(strings.Split(p, "/"), ".."):
			fault("%s %q: must be a path below the workspace without \"..\"", field, p)
		case c == "." && !whole:
			fault("%s %q: must not be the workspace itself", field, p)
		default:
			clean = append(clean, c)
		}
	}
	return clean
}
