// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArrange(t *testing.T) {
	t.Parallel()
	file := func(p string, k kind) rule { return rule{path: p, kind: k} }
	dir := func(p string, k kind) rule { return rule{path: p, kind: k, dir: true} }
	pin := func(p string) rule { return dir(p, pinned) }
	host := func(p string, k kind) rule { return rule{path: p, kind: k, dir: true, source: "/host"} }
	for name, tc := range map[string]struct{ rules, want []rule }{
		"none": {nil, nil},
		// What must not be replaced must not be moved away either.
		"one file": {[]rule{file("a/b/f", readOnly)}, []rule{pin("a"), pin("a/b"), file("a/b/f", readOnly)}},
		"two in one directory": {[]rule{file("a/g", readOnly), file("a/f", hidden)},
			[]rule{pin("a"), file("a/f", hidden), file("a/g", readOnly)}},
		"one rule in another": {[]rule{file("a/b/f", readOnly), dir("a", readOnly)}, []rule{dir("a", readOnly)}},
		"hidden in read-only": {[]rule{dir("a", readOnly), file("a/b/f", hidden)},
			[]rule{dir("a", readOnly), file("a/b/f", hidden)}},
		"read-only in hidden":    {[]rule{dir("a", hidden), file("a/b/f", readOnly)}, []rule{dir("a", hidden)}},
		"the same path":          {[]rule{file("f", readOnly), file("f", hidden)}, []rule{file("f", hidden)}},
		"everything":             {[]rule{dir(".", readOnly), file("a/f", hidden)}, []rule{dir(".", readOnly), file("a/f", hidden)}},
		"a copy below read-only": {[]rule{dir("a", readOnly), host("a/m", writable)}, []rule{dir("a", readOnly), host("a/m", declared)}},
		"a copy":                 {[]rule{host("a/m", writable)}, []rule{pin("a"), host("a/m", writable)}},
		"names that sort apart": {[]rule{file("a-b/f", readOnly), file("a/f", readOnly)},
			[]rule{pin("a-b"), file("a-b/f", readOnly), pin("a"), file("a/f", readOnly)}},
	} {
		got := arrange(tc.rules)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(rule{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// For random rules, what the mounts make of every path is what the rules say, and no directory above a rule can be moved.
func TestArrangeAgainstOracle(t *testing.T) {
	t.Parallel()
	var paths []string
	for _, a := range "ab" {
		for _, b := range "ab" {
			for _, c := range "ab" {
				paths = append(paths, fmt.Sprintf("%c", a), fmt.Sprintf("%c/%c", a, b), fmt.Sprintf("%c/%c/%c", a, b, c))
			}
		}
	}
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var rules []rule
		for range rng.IntN(5) {
			rules = append(rules, rule{path: paths[rng.IntN(len(paths))], kind: []kind{readOnly, hidden}[rng.IntN(2)], dir: true})
		}
		list := arrange(rules)
		for _, p := range paths {
			if got, want := effect(list, p), oracle(rules, p); got != want {
				t.Fatalf("seed %d: rules %v: mounts %v make %s %d, want %d", seed, rules, list, p, got, want)
			}
		}
		for i, r := range list {
			if above := nearest(list[:i], r.path); above == nil && path.Dir(r.path) != "." {
				t.Fatalf("seed %d: mounts %v: nothing holds the directory above %s", seed, list, r.path)
			}
		}
	}
}

// effect is what the last mount on a path or above it makes of it.
func effect(list []rule, p string) kind {
	if above := nearest(list, p); above != nil {
		return above.kind
	}
	return pinned
}

// oracle reads the rules one by one: hidden wins over read-only, and both hold for everything below.
func oracle(rules []rule, p string) (k kind) {
	for _, r := range rules {
		if within(r.path, p) && r.kind > k {
			k = r.kind
		}
	}
	return k
}
