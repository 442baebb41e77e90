// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/evoseal/containment/allowlist"
	"github.com/google/go-cmp/cmp"
)

func TestChangedLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old, content string
		want         int
	}{
		{"", "", 0}, {"a\n", "a\n", 0}, {"", "a\nb", 2}, {"a\nb\n", "", 2}, {"a\nb\nc\n", "a\nB\nc\n", 2},
		{"a\nb", "a\nb\n", 2}, {"a\nb\nc\nd\n", "b\nc\nd\ne\n", 2}, {"a\na\na\n", "a\na\n", 1},
		{"x\na\ny\nb\nz\n", "1\na\n2\nb\n3\n", 6}, {"a\nb\n", "b\na\n", 2},
		{numbered(5000, "a"), numbered(5000, "b"), 10000}, // written anew
	} {
		if got := allowlist.CountChangedLines([]byte(c.old), []byte(c.content)); got != c.want {
			t.Errorf("%.20q → %.20q: %d, want %d", c.old, c.content, got, c.want)
		}
	}
}

// TestChangedLinesIsShortest compares with the longest common subsequence, computed the slow way.
func TestChangedLinesIsShortest(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		a, b := randomLines(rnd), randomLines(rnd)
		want := len(a) + len(b) - 2*longestCommon(a, b)
		got := allowlist.CountChangedLines([]byte(strings.Join(a, "")), []byte(strings.Join(b, "")))
		if got != want {
			t.Fatalf("%q → %q: %d, want %d", a, b, got, want)
		}
	}
}

func randomLines(rnd *rand.Rand) []string {
	lines := make([]string, rnd.IntN(12))
	for i := range lines {
		lines[i] = fmt.Sprintf("%d\n", rnd.IntN(5))
	}
	return lines
}

func longestCommon(a, b []string) int {
	row := make([]int, len(b)+1)
	for i := range a {
		before := slices.Clone(row)
		for j := range b {
			if row[j+1] = max(before[j+1], row[j]); a[i] == b[j] {
				row[j+1] = before[j] + 1
			}
		}
	}
	return row[len(b)]
}

// TestDiffReadsBack: the patch that a plan shows says exactly what the plan does.
func TestDiffReadsBack(t *testing.T) {
	t.Parallel()
	p := loadPolicy(t, treePolicyText)
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		old := strings.Join(slices.Concat(randomLines(rnd), randomLines(rnd), randomLines(rnd)), "") + "end" + numbered(int(seed%2), "")
		content := strings.Join(slices.Concat(randomLines(rnd), randomLines(rnd), randomLines(rnd)), "") + "fin"
		dir := newFiles(t, map[string]string{"src/with space.txt": old, "src/gone": old, "src/none": "", "src/same": "s\n"})
		tree := openTree(t, dir, nil)
		edits := []allowlist.Edit{
			modify("src/with space.txt", old, content), remove("src/gone", old), create("src/ü/new", content),
			create("src/empty", ""), remove("src/none", ""), modify("src/same", "s\n", "s\n"),
		}
		plan, err := p.Plan(tree, edits)
		must(t, err)
		back, err := allowlist.ParsePatch(plan.Diff(), tree)
		if err != nil {
			t.Fatalf("%v\n%s", err, plan.Diff())
		}
		want := slices.Clone(edits[:len(edits)-1]) // an edit that changes nothing has no section
		for i := range want {
			if len(want[i].Content) == 0 {
				want[i].Content = nil
			}
		}
		for i := range back {
			if len(back[i].Content) == 0 {
				back[i].Content = nil
			}
		}
		if diff := cmp.Diff(want, back); diff != "" {
			t.Fatalf("edits (-want +got):\n%s\n%s", diff, plan.Diff())
		}
	}
}
