// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// policy reads the whole document.
func (r *reader) policy(n *yaml.Node, top origin) spec {
	f := r.fields(n, top, "version", "surface", "protect", "gate", "release", "limits")
	s := spec{at: place(top, n)}
	if f == nil {
		return spec{at: s.at, hasGate: true, unread: true}
	}
	r.version(f["version"], s.at)
	for i, e := range r.list(f["surface"], top.in("surface")) {
		s.surface = append(s.surface, r.rule(e, top.in("surface[%d]", i)))
	}
	s.unread = f["surface"] != nil && len(s.surface) == 0 && len(f["surface"].Content) > 0
	s.protect = r.strs(f["protect"], top.in("protect"))
	s.gate, s.hasGate = r.strs(f["gate"], top.in("gate")), f["gate"] != nil
	for i, e := range r.list(f["release"], top.in("release")) {
		s.release = append(s.release, r.release(e, top.in("release[%d]", i))...)
	}
	if f["limits"] != nil {
		s.limits = r.limits(f["limits"], top.in("limits"))
	}
	return s
}

func (r *reader) version(n *yaml.Node, top origin) {
	switch {
	case n == nil:
		r.ps.at(top, "version is missing", "write version: 1")
	case r.plain(n, top) && (n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Value != "1"):
		r.ps.at(place(top, n), "this version is not known", "write version: 1")
	}
}

func (r *reader) rule(n *yaml.Node, at origin) specRule {
	f := r.fields(n, at, "paths", "ops", "go_bodies", "regions", "directives")
	at = place(at, n)
	s := specRule{at: at, unread: f == nil}
	if f == nil {
		return s
	}
	s.paths = r.strs(f["paths"], at.in(".paths"))
	for _, t := range r.strs(f["ops"], at.in(".ops")) {
		s.ops = append(s.ops, specOp{opNamed(t.s), t.at})
	}
	// A list with bad entries only has been reported; that it is empty would be a second report of the same.
	s.unread = hasEntries(f["paths"]) && len(s.paths) == 0 || hasEntries(f["ops"]) && len(s.ops) == 0
	if n := f["go_bodies"]; n != nil {
		s.hasBodies, s.bodiesAt = true, place(at.in(".go_bodies"), n)
		s.goBodies = r.strs(n, s.bodiesAt)
	}
	if f["regions"] != nil {
		s.regions = r.markers(f["regions"], at.in(".regions"))
	}
	s.directives = r.strs(f["directives"], at.in(".directives"))
	return s
}

func (r *reader) markers(n *yaml.Node, at origin) *specMarkers {
	f := r.fields(n, at, "begin", "end")
	at = place(at, n)
	if f == nil {
		return &specMarkers{text{bad: true}, text{bad: true}}
	}
	return &specMarkers{r.str(f["begin"], at.in(".begin")), r.str(f["end"], at.in(".end"))}
}

func hasEntries(n *yaml.Node) bool {
	return n != nil && (n.Kind != yaml.SequenceNode || len(n.Content) > 0)
}

func opNamed(name string) Op {
	for _, op := range []Op{Create, Modify, Delete} {
		if op.String() == name {
			return op
		}
	}
	return 0
}

func (r *reader) release(n *yaml.Node, at origin) []specRelease {
	f := r.fields(n, at, "pattern", "reason")
	if f == nil {
		return nil
	}
	at = place(at, n)
	return []specRelease{{r.str(f["pattern"], at.in(".pattern")), r.str(f["reason"], at.in(".reason"))}}
}

// limits starts from the defaults, so that a file need not name all.
func (r *reader) limits(n *yaml.Node, at origin) *Limits {
	l := DefaultLimits()
	f := r.fields(n, at, "files", "created", "deleted", "changed_lines", "file_bytes", "total_bytes")
	for key, to := range map[string]*int{
		"files": &l.Files, "created": &l.Created, "deleted": &l.Deleted, "changed_lines": &l.ChangedLines,
	} {
		if v, ok := r.number(f[key], at.in(".%s", key), false); ok {
			*to = int(min(v, math.MaxInt))
		}
	}
	for key, to := range map[string]*int64{"file_bytes": &l.FileBytes, "total_bytes": &l.TotalBytes} {
		if v, ok := r.number(f[key], at.in(".%s", key), true); ok {
			*to = v
		}
	}
	return &l
}

// number reads a decimal number, and KiB or MiB behind it if it is a size.
func (r *reader) number(n *yaml.Node, at origin, size bool) (int64, bool) {
	if n == nil || !r.plain(n, at) {
		return 0, false
	}
	fix := "write a whole number, 0 for none"
	if size {
		fix = "write a number of bytes, or one with KiB or MiB, such as 512KiB; 0 for none"
	}
	digits, unit := n.Value, int64(1)
	if d, ok := strings.CutSuffix(digits, "KiB"); ok && size {
		digits, unit = d, 1<<10
	} else if d, ok := strings.CutSuffix(digits, "MiB"); ok && size {
		digits, unit = d, 1<<20
	}
	v, err := strconv.ParseUint(digits, 10, 63)
	isNumber := n.Tag == "!!int" || unit > 1 && n.Tag == "!!str"
	// YAML 1.1 reads 010 as eight, people read ten: neither is a safe guess.
	octal := len(digits) > 1 && digits[0] == '0'
	if n.Kind != yaml.ScalarNode || !isNumber || octal || err != nil || int64(v) > math.MaxInt64/unit {
		r.ps.at(place(at, n), fmt.Sprintf("%q is not a limit", n.Value), fix)
		return 0, false
	}
	return int64(v) * unit, true
}
