// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

// job is what is evolved, and how the host tells which of two variants is better. The loop around it is the same for
// all jobs, and so is the boundary.
type job interface {
	// prepare writes the tree of a new run.
	prepare(dir string) error
	// open is called once the tree is there, before the first variant of a run that begins or goes on.
	open(dir string) error

	task() string
	surface() allowlist.Config
	spec() executor.Spec
	flags() []string // of every go command in a run
	judge() isolation.Judge
	// files are those of the surface, as they are in the accepted tree.
	files(dir string) ([]variant.File, error)

	// baseline is for variant.State.
	baseline() string

	// scores of what the run began with, of the accepted tree, and of the last variant that came to the judge; nil where
	// there is none.
	scores() (start, best, last *variant.Score)
	// proposed is told of each variant before it goes on.
	proposed(edits []allowlist.Edit)
	// settled says whether the variant that came to the judge last was kept.
	settled(accepted bool)
	// done reports that nothing is left to improve.
	done() bool
	// success reports that the run was worth it.
	success() bool
	// summary measures what was found, in the sandbox, and says how it compares. It may be empty.
	summary(ctx context.Context, l layout, sandbox sandbox) (string, error)
}

// sandbox runs a directory as the boundary would, for measurements after the run. It decides nothing.
type sandbox func(ctx context.Context, dir string, spec executor.Spec) (*executor.Result, error)

// readFile reads one file of the surface.
func readFile(dir, path string, bodies ...string) (variant.File, error) {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
	return variant.File{Path: path, Content: string(data), Bodies: bodies}, err
}
