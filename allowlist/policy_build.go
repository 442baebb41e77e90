// SPDX-License-Identifier: Apache-2.0

package allowlist

import "slices"

// New makes a policy from a plain value. It holds it to the rules of Load, and returns a *ConfigError.
func New(c Config) (*Policy, error) {
	var ps problems
	return build(specOf(c), &ps)
}

// build checks a policy and compiles it, or returns all problems.
func build(s spec, ps *problems) (*Policy, error) {
	defaults, err := defaultRules()
	if err != nil {
		return nil, err
	}
	c := &checker{ps}
	surface, operator, releases := c.surface(s), c.protect(s), c.releases(s)
	limits := c.limits(s, DefaultLimits())
	protect := compileProtection(slices.Concat(defaults.rules, operator))
	c.dead(surface, releases, protect, limits)
	for _, r := range releases {
		c.deadRelease(r, surface, protect)
	}
	if err := ps.err(); err != nil {
		return nil, err
	}
	p := &Policy{
		protect:  protect,
		released: &node{},
		lifted:   releases,
		layers:   []layer{compileLayer(surface)},
		limit:    limits,
		canon:    canonOf(defaults.version, surface, operator, releases),
	}
	for i, r := range releases {
		for _, components := range r.pattern.alts {
			p.released.add(components, i)
		}
	}
	p.digest = p.canon.digest(limits)
	return p, nil
}

func compileLayer(rules []*surfaceRule) layer {
	l := layer{trie: &node{}}
	for _, r := range rules {
		for _, path := range r.paths {
			for _, components := range path.pattern.alts {
				l.trie.add(components, len(l.entries))
			}
			l.entries = append(l.entries, surfaceEntry{r, path.pattern, Rule{Pattern: path.pattern.text, Source: path.at.source()}})
		}
	}
	return l
}
