// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
)

// digestDomain keeps the digest of a policy apart from every other digest of the same bytes.
const digestDomain = "containment/allowlist/policy/v1"

// canon is a policy without what does not matter: order and place. Every list is sorted.
type canon struct {
	defaults int        // version of the list of default protected names
	layers   [][]string // one for each surface; each string is one rule
	protect  []string
	gate     []string
	release  []string
}

func canonOf(defaults int, surface []*surfaceRule, protect []*protectRule, releases []release) canon {
	c := canon{defaults: defaults}
	c.addLayer(surface)
	c.addProtect(protect)
	for _, r := range releases {
		c.release = append(c.release, pack(r.pattern.text, r.reason))
	}
	slices.Sort(c.release)
	return c
}

func (c *canon) addLayer(surface []*surfaceRule) {
	var rules []string
	for _, r := range surface {
		var paths, ops, regions []string
		for _, p := range r.paths {
			paths = append(paths, p.pattern.text)
		}
		for op, granted := range r.ops {
			if granted {
				ops = append(ops, Op(op).String())
			}
		}
		if r.regions != nil {
			regions = []string{r.regions.Begin, r.regions.End}
		}
		rules = append(rules, pack(packSorted(paths), packSorted(ops), packSorted(r.goBodies), pack(regions...),
			packSorted(r.directives)))
	}
	slices.Sort(rules)
	c.layers = append(slices.Clone(c.layers), rules)
	slices.SortFunc(c.layers, slices.Compare)
}

func (c *canon) addProtect(rules []*protectRule) {
	c.protect, c.gate = slices.Clone(c.protect), slices.Clone(c.gate)
	for _, r := range rules {
		if r.rank == rankGate {
			c.gate = append(c.gate, r.rule.Pattern)
		} else {
			c.protect = append(c.protect, r.rule.Pattern)
		}
	}
	slices.Sort(c.protect)
	slices.Sort(c.gate)
}

// digest covers everything, each part with its length in front.
func (c canon) digest(l Limits) string {
	h := sha256.New()
	writePart(h, digestDomain)
	writePart(h, fmt.Sprint(c.defaults))
	writePart(h, pack(packAll(c.layers)...))
	for _, list := range [][]string{c.protect, c.gate, c.release} {
		writePart(h, pack(list...))
	}
	writePart(h, fmt.Sprint(l.Files, l.Created, l.Deleted, l.ChangedLines, l.FileBytes, l.TotalBytes))
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func writePart(h hash.Hash, s string) {
	h.Write(binary.AppendUvarint(nil, uint64(len(s)))) // a hash never returns an error
	h.Write([]byte(s))
}

// pack joins strings so that no two lists give the same string.
func pack(list ...string) string {
	var b []byte
	for _, s := range list {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return string(b)
}

func packSorted(list []string) string { return pack(slices.Sorted(slices.Values(list))...) }

func packAll(lists [][]string) []string {
	var out []string
	for _, l := range lists {
		out = append(out, pack(l...))
	}
	return out
}
