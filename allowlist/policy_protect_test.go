// SPDX-License-Identifier: Apache-2.0

package allowlist

import "testing"

func TestProtects(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, `version: 1
surface: [{paths: ["**"], ops: [modify]}]
protect: [configs/safety.yaml, "data/*.csv", lib/deep/**, anydepth/**, "x/{y,z}/w", "[[]id]"]
gate: ["**/gate/*.go"]
release: [{pattern: ci/Makefile, reason: "T-1"}, {pattern: vendor/**, reason: "T-2"}]
`)
	for path, want := range map[string]string{
		"configs/safety.yaml": "configs/safety.yaml", "CONFIGS/Safety.YAML": "configs/safety.yaml",
		"configs": "configs/safety.yaml", "configs/other.yaml": "", "a/configs/safety.yaml": "",
		"configs/safety.yaml/below": "configs/safety.yaml", "data": "data/*.csv", "data/a.csv": "data/*.csv",
		"data/a.txt": "", "data/.csv/x": "data/*.csv", "lib": "lib/deep/**", "lib/deep": "lib/deep/**", "lib/deep/a/b": "lib/deep/**",
		"lib/other": "", "anydepth": "anydepth/**", "a/AnyDepth/b": "anydepth/**", "x": "x/{y,z}/w", "x/z": "x/{y,z}/w",
		"x/y/w/v": "x/{y,z}/w", "x/q": "", "app/[id]/p.ts": "[[]id]", "app/i/p.ts": "", "gate": "", "a/gate": "",
		"a/gate/x.go": "**/gate/*.go", "gate/x.go": "**/gate/*.go", "gate/a/x.go": "",
		"ci/Makefile": "", "ci/makefile": "Makefile", "CI/Makefile": "Makefile", "ci/x/Makefile": "Makefile", "vendor/a/go.mod": "",
		"vendor": "vendor", "vendor/.git/x": ".git", "vendor/a.pem": "*.pem",
		// Names that no edit can have, and that may be on disk.
		".GIT\xff": "", "\xff/.GIT": ".git", "a//.git": ".git", "./.git/": ".git", ".g\u200dit": ".git", "\uff0egit": ".git", "a\uff0f.env": ".env",
		"": "", "/": "", "\xff.SO": "*.so",
	} {
		rule, got := p.protects(path)
		if got != (want != "") || rule.Pattern != want {
			t.Errorf("protects(%+q) = %q, %v; want %q", path, rule.Pattern, got, want)
		}
	}
}

// TestWithCore: the paths of a tree are literal, and anchored even if they have one component.
func TestWithCore(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, "version: 1\nsurface: [{paths: ['**'], ops: [modify]}]\ngate: []\n")
	q := p.withCore([]Rule{{Pattern: "policy.yaml", Class: "core"}, {Pattern: "a/[x]*/Bin", Class: "core"}})
	for path, want := range map[string]bool{
		"policy.yaml": true, "Policy.YAML": true, "sub/policy.yaml": false, "policy.yaml/x": true, "policy.yaml2": false,
		"a": true, "a/[x]*": true, "a/[x]*/bin": true, "a/[x]*/bin/c": true, "a/xy/Bin": false, "a/[x]*/other": false,
	} {
		if _, got := q.protects(path); got != want {
			t.Errorf("protects(%+q) = %v, want %v", path, got, want)
		}
		if _, got := p.protects(path); got {
			t.Errorf("the policy itself has changed: it protects %+q", path)
		}
	}
	if q.Digest() != p.Digest() {
		t.Error("the digest names the tree, not the policy")
	}
	if d, _ := q.judge(Modify, "policy.yaml"); d.Code != ErrProtected || d.Rule.Class != "core" {
		t.Errorf("got %v", d)
	}
}

// TestRuleThatIsNamed: of several rules that protect a path the one named is that which no release could lift.
func TestRuleThatIsNamed(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, `version: 1
surface: [{paths: [src/**], ops: [modify]}]
protect: ["src/p*"]
gate: ["src/*g"]
`)
	for path, want := range map[string]string{
		"src/p/.env": "default:core", "src/p/Makefile": "policy:3", "src/pg/Makefile": "policy:3", "src/g/Makefile": "policy:4",
		"src/Makefile": "default:exec",
	} {
		if d, _ := p.judge(Modify, path); d.Rule.Source != want || d.Code != ErrProtected {
			t.Errorf("got %v, want a rule from %s", d, want)
		}
	}
}
