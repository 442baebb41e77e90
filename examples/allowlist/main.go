// SPDX-License-Identifier: Apache-2.0

// Allowlist judges three patches for a small tree: one that also reaches for whatever judges it, one that comes in the
// clothes of links, and one that does its work. Only the last is written.
//
//	go run ./examples/allowlist
//
// The patches are in the directory patches, the policy is below. The exit code is 0 if the tree ends as it should, else 1.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/evoseal/containment/allowlist"
)

//go:embed patches
var patches embed.FS

// policyText lets a generator change what is below src, but neither the package that watches it nor the tests that judge
// it. What builds, starts and reviews the program is protected without being named.
const policyText = `
version: 1
surface:
  - paths: [src/**]
    ops: [modify, create]
protect: [src/guard/**]
gate: ["*_test.go"]
`

// tree is what there is before the first patch.
var tree = map[string]string{
	"src/score.go":        "package src\n\nfunc Score(n int) int { return n }\n",
	"src/score_test.go":   "package src\n",
	"src/guard/guard.go":  "package guard\n\nconst MaxIterations = 50\n",
	"go.mod":              "module example\n",
	".github/workflow.md": "tests run here\n",
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "allowlist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "allowlist-example-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for name, text := range tree {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	policy, err := allowlist.Load(strings.NewReader(policyText))
	if err != nil {
		return err
	}
	t, err := allowlist.OpenTree(dir, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	seal, err := policy.Seal(t)
	if err != nil {
		return err
	}
	for _, name := range []string{"hostile.patch", "links.patch", "honest.patch"} {
		text, err := patches.ReadFile("patches/" + name)
		if err != nil {
			return err
		}
		if err := judge(ctx, w, policy, t, name, text); err != nil {
			return err
		}
	}
	if err := seal.Verify(t); err != nil {
		return err
	}
	score, err := t.ReadFile("src/score.go")
	fmt.Fprintf(w, "protected files are as they were; src/score.go is now:\n%s", score)
	return err
}

// judge applies a patch if all of it is allowed, and says what is not.
func judge(ctx context.Context, w io.Writer, p *allowlist.Policy, t *allowlist.Tree, name string, text []byte) error {
	fmt.Fprintln(w, name)
	edits, err := allowlist.ParsePatch(text, t)
	var plan *allowlist.Plan
	if err == nil {
		plan, err = p.Plan(t, edits)
	}
	var decisions []allowlist.Decision
	if denied, ok := errors.AsType[*allowlist.DeniedError](err); ok {
		decisions = denied.Decisions
	} else if err != nil {
		return err // a fault of the system denies too
	} else {
		decisions = plan.Decisions()
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, d := range decisions {
		verdict := "denied"
		if d.Allowed {
			verdict = "allowed"
		}
		// Names are quoted: they come from whoever wrote the patch.
		fmt.Fprintf(table, "  %s\t%v %+q\t%s\t%s\t%s\n", verdict, d.Op, d.Path, d.Code, d.Rule.Source, d.Detail)
	}
	table.Flush()
	if plan == nil {
		fmt.Fprint(w, "  nothing was written\n\n")
		return nil
	}
	if _, err := plan.Apply(ctx); err != nil {
		return err
	}
	fmt.Fprint(w, "  written\n\n")
	return nil
}
