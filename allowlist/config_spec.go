// SPDX-License-Identifier: Apache-2.0

package allowlist

import "fmt"

// spec is a policy before it is judged, each part with its place in the source, whether that is a file or a Config.
type spec struct {
	at      origin
	surface []specRule
	protect []text
	gate    []text
	hasGate bool
	release []specRelease
	limits  *Limits
	unread  bool // the surface was refused, which has been reported
}

// origin is a place in a policy.
type origin struct {
	file  string
	line  int    // 0 in a Config
	field string // such as "surface[0].paths[1]"
}

// source is the place as Rule.Source names it.
func (o origin) source() string {
	if o.line == 0 {
		return o.file + ":" + o.field
	}
	return fmt.Sprintf("%s:%d", o.file, o.line)
}

// in is the place of a part of what stands at o.
func (o origin) in(format string, args ...any) origin {
	o.field += fmt.Sprintf(format, args...)
	return o
}

type text struct {
	s   string
	at  origin
	bad bool // has been reported
}

type specOp struct {
	op Op
	at origin
}

type specRule struct {
	at         origin
	paths      []text
	ops        []specOp
	goBodies   []text
	hasBodies  bool
	bodiesAt   origin
	regions    *specMarkers
	directives []text
	unread     bool // the same for paths and ops
}

type specMarkers struct {
	begin, end text
}

type specRelease struct {
	pattern, reason text
}

// specOf reads a Config. It copies, so that nobody can change a policy through the slices of its Config.
func specOf(c Config) spec {
	top := origin{file: "config"}
	s := spec{at: top, hasGate: c.Gate != nil, protect: texts(c.Protect, top.in("protect")), gate: texts(c.Gate, top.in("gate"))}
	for i, r := range c.Surface {
		s.surface = append(s.surface, specOfRule(r, top.in("surface[%d]", i)))
	}
	for i, r := range c.Release {
		at := top.in("release[%d]", i)
		s.release = append(s.release, specRelease{text{s: r.Pattern, at: at.in(".pattern")}, text{s: r.Reason, at: at.in(".reason")}})
	}
	if c.Limits != nil {
		limits := *c.Limits
		s.limits = &limits
	}
	return s
}

func specOfRule(r SurfaceRule, at origin) specRule {
	s := specRule{
		at:         at,
		paths:      texts(r.Paths, at.in(".paths")),
		goBodies:   texts(r.GoBodies, at.in(".go_bodies")),
		hasBodies:  r.GoBodies != nil, // an empty list is a mistake, not "every function"
		bodiesAt:   at.in(".go_bodies"),
		directives: texts(r.Directives, at.in(".directives")),
	}
	for i, op := range r.Ops {
		s.ops = append(s.ops, specOp{op, at.in(".ops[%d]", i)})
	}
	if r.Regions != nil {
		in := at.in(".regions")
		s.regions = &specMarkers{text{s: r.Regions.Begin, at: in.in(".begin")}, text{s: r.Regions.End, at: in.in(".end")}}
	}
	return s
}

func texts(list []string, at origin) []text {
	out := make([]text, len(list))
	for i, s := range list {
		out[i] = text{s: s, at: at.in("[%d]", i)}
	}
	return out
}
