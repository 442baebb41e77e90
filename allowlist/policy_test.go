// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/evoseal/containment/allowlist"
)

var allOps = []allowlist.Op{allowlist.Create, allowlist.Modify, allowlist.Delete}

// randomConfig makes a config that may be refused: the properties are about those that are not.
func randomConfig(r *rand.Rand) allowlist.Config {
	words := []string{"src/**", "src/a/**", "src/*.go", "**/*.go", "*", "docs/", "src/b/x.go", "src/{a,b}/*", "src/Makefile", "a"}
	pick := func(most int) []string {
		out := []string{}
		for range r.IntN(most + 1) {
			out = append(out, words[r.IntN(len(words))])
		}
		return out
	}
	c := allowlist.Config{Protect: pick(1), Gate: pick(1)}
	for range 1 + r.IntN(3) {
		rule := allowlist.SurfaceRule{Paths: append(pick(2), words[r.IntN(len(words))])}
		for _, op := range allOps {
			if r.IntN(2) == 0 {
				rule.Ops = append(rule.Ops, op)
			}
		}
		if r.IntN(5) == 0 {
			rule.Ops, rule.Regions = []allowlist.Op{allowlist.Modify}, &allowlist.Markers{Begin: "# b", End: "# e"}
		}
		c.Surface = append(c.Surface, rule)
	}
	if r.IntN(3) == 0 {
		c.Release = []allowlist.Release{{Pattern: "src/Makefile", Reason: "test"}}
	}
	return c
}

// probePaths are the paths on which two policies are compared.
var probePaths = []string{"src", "src/a.go", "src/a/x.go", "src/a/b/c.txt", "src/b/x.go", "src/b/y.go", "docs/x.md", "docs/a/b.go", "a",
	"x.go", "src/Makefile", "src/a/Makefile", "SRC/a.go", ".git/config", "src/b"}

// TestPolicyProperties: a narrowing or one more protect rule never allows more, and the order of rules is nothing.
func TestPolicyProperties(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	policies, narrowed, allowed := 0, 0, 0
	for range 250 {
		c := randomConfig(r)
		p, err := allowlist.New(c)
		if err != nil {
			continue
		}
		policies++
		more := c
		more.Protect = append([]string{"src/b"}, c.Protect...)
		if q, err := allowlist.New(more); err == nil {
			noMore(t, p, q)
		}
		shuffled := shuffle(r, c)
		q, err := allowlist.New(shuffled)
		if err != nil {
			t.Fatalf("%+v is refused in another order: %v", c, err)
		}
		noMore(t, p, q)
		noMore(t, q, p)
		if p.Digest() != q.Digest() {
			t.Fatalf("%+v has another digest in another order", c)
		}
		n := randomConfig(r)
		n.Gate, n.Release = nil, nil
		if q, err := p.Narrow(n); err == nil {
			narrowed++
			allowed += noMore(t, p, q)
			if p.Digest() == q.Digest() {
				t.Fatal("a narrowed policy has the digest of its origin")
			}
		}
	}
	if policies < 50 || narrowed < 10 || allowed < 20 {
		t.Errorf("%d policies, %d narrowed, %d edits allowed: the random data decides nothing", policies, narrowed, allowed)
	}
}

// noMore fails if the second policy allows what the first does not. It counts what the second allows.
func noMore(t *testing.T, p, q *allowlist.Policy) (allowed int) {
	t.Helper()
	for _, path := range probePaths {
		for _, op := range allOps {
			if !q.Explain(op, path).Allowed {
				continue
			}
			allowed++
			if d := p.Explain(op, path); !d.Allowed {
				t.Fatalf("allowed by the second policy: %v", d)
			}
		}
	}
	return allowed
}

func shuffle(r *rand.Rand, c allowlist.Config) allowlist.Config {
	swap := func(s []string) []string {
		s = append([]string{}, s...)
		r.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
		return s
	}
	c.Protect, c.Gate = swap(c.Protect), swap(c.Gate)
	c.Surface = append([]allowlist.SurfaceRule{}, c.Surface...)
	r.Shuffle(len(c.Surface), func(i, j int) { c.Surface[i], c.Surface[j] = c.Surface[j], c.Surface[i] })
	for i := range c.Surface {
		c.Surface[i].Paths = swap(c.Surface[i].Paths)
	}
	return c
}

// TestPolicyIsImmutable changes a Config after it was used.
func TestPolicyIsImmutable(t *testing.T) {
	t.Parallel()
	limits := allowlist.DefaultLimits()
	c := allowlist.Config{Surface: []allowlist.SurfaceRule{goodRule()}, Protect: []string{"src/guard"}, Gate: []string{}, Limits: &limits}
	p, err := allowlist.New(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Surface[0].Paths[0], c.Surface[0].Ops[0], c.Protect[0], limits.Files = "**", allowlist.Delete, "x", 1000
	if d := p.Explain(allowlist.Delete, "README.md"); d.Code != allowlist.ErrOutsideSurface {
		t.Errorf("got %v", d)
	}
	if d := p.Explain(allowlist.Modify, "src/guard/a.go"); d.Code != allowlist.ErrProtected {
		t.Errorf("got %v", d)
	}
	fresh, err := allowlist.New(allowlist.Config{Surface: []allowlist.SurfaceRule{goodRule()}, Protect: []string{"src/guard"}, Gate: []string{}})
	if err != nil || fresh.Digest() != p.Digest() {
		t.Errorf("digest %s, want %s (%v)", p.Digest(), fresh.Digest(), err)
	}
}

func TestZeroPolicyAllowsNothing(t *testing.T) {
	t.Parallel()
	for _, p := range []*allowlist.Policy{nil, {}} {
		if d := p.Explain(allowlist.Modify, "src/a.go"); d.Allowed || d.Code != allowlist.ErrProtected {
			t.Errorf("got %v", d)
		}
		if q, err := p.Narrow(allowlist.Config{}); q != nil || !errors.Is(err, allowlist.ErrConfig) {
			t.Errorf("Narrow = %v, %v", q, err)
		}
	}
}

func TestInvalidOpIsDenied(t *testing.T) {
	t.Parallel()
	p := benchPolicy(t, nil)
	for _, op := range []allowlist.Op{0, 4, 255} {
		if d := p.Explain(op, "src/a.go"); d.Allowed || d.Code != allowlist.ErrOpNotAllowed {
			t.Errorf("got %v", d)
		}
	}
}

func TestLoadFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	const text = "version: 1\nsurface:\n- paths: [conf/**]\n  ops: [modify]\ngate: []\n"
	if err := os.Mkdir("conf", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"policy.yaml", "conf/policy.yaml"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := allowlist.LoadFile(filepath.Join(dir, "conf/policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Explain(allowlist.Modify, "conf/a"); !d.Allowed || d.Rule.Source != "policy.yaml:3" || d.Rule.Pattern != "conf/**" {
		t.Errorf("got %v", d)
	}
	if _, err := allowlist.LoadFile("policy.yaml"); err != nil {
		t.Error(err)
	}
	if _, err := allowlist.LoadFile("conf/policy.yaml"); !errors.Is(err, allowlist.ErrConfig) ||
		!strings.Contains(err.Error(), "policy.yaml:3") || !strings.Contains(err.Error(), "protect") {
		t.Errorf("a policy in its own surface: %v", err)
	}
	if _, err := allowlist.LoadFile("absent.yaml"); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, allowlist.ErrConfig) {
		t.Errorf("absent file: %v", err)
	}
}

func TestLoadReturnsReadErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if p, err := allowlist.Load(iotest.ErrReader(broken)); p != nil || !errors.Is(err, broken) {
		t.Errorf("Load = %v, %v", p, err)
	}
}

// FuzzLoad: no text makes the loader fail in another way than by an error, and an accepted one denies by default.
func FuzzLoad(f *testing.F) {
	for _, c := range configProblems {
		if len(c.policy) < 1000 {
			f.Add(c.policy)
		}
	}
	f.Add(head + tail)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := allowlist.Load(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, allowlist.ErrConfig) {
				t.Errorf("%v is not ErrConfig", err)
			}
			return
		}
		if d := p.Explain(allowlist.Modify, ".git/config"); d.Allowed {
			t.Errorf("allowed: %v", d)
		}
	})
}
