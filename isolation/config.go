// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/hashicorp/go-multierror"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/runaway"
)

// Config is all that a [Boundary] consists of. There are no defaults for what protects: everything but Override,
// Approval, MinTier, RunID and Logger must be set, and Open names all that is missing. The Boundary does not close what
// it is given.
type Config struct {
	Trust    TrustModel // what the host believes; the zero value requires TierContainer and approval
	Sources  Sources    // where to look whether it is true
	Override *Override  // nil: none
	Approval *Approval  // needed when the decision asks for one

	Governor *runaway.Governor
	// Tree holds the variant. Nothing else may write to it while the Boundary is open.
	Tree  *allowlist.Tree
	Edits *allowlist.Policy
	// Store keeps the checkpoints. It is opened with an empty, non-nil Exclude, since what it leaves out could not be taken
	// back, with ForeignQuarantine, since a restoration that stops at what it does not know could be blocked by a variant,
	// and with SyncDurable, the default, since the log must not name what a power cut takes away. The checkpoint of every
	// tree that was accepted stays pinned, and where a step changed more than its edits, that tree is kept as well: unpin
	// those that are no longer of interest, and prune.
	Store *rollback.Store

	// Executors are tried in this order. The first that reaches the required tier and is proven to is used.
	Executors []Candidate
	// Run is what is executed for each variant. Workspace may be empty; ArtifactDir, Overlay, Label and Stdin must be.
	// Require is raised to what the decision needs. A variable in Env that is named like a secret counts as one.
	Run   executor.Spec
	Judge Judge // nil is refused, so that nobody judges by the exit status alone by accident

	MinTier Tier // raises the requirement, never lowers it; the zero value leaves it
	// StateDir holds the decision log, the trusted copies of the files that decide about variants, and artifacts while
	// they are judged. It lies outside of the tree, and belongs to this run; it is made, 0700, if it is missing.
	StateDir string
	RunID    string       // the governor's; "" takes it from there
	Logger   *slog.Logger // nil discards
}

// Candidate is an executor, or the reason why there is none: what a constructor returned, as it is.
//
//	bwrap, err := bubblewrap.New(ctx, bubblewrap.Config{})
//	c.Executors = append(c.Executors, isolation.Candidate{Name: "bubblewrap", Executor: bwrap, Err: err})
type Candidate struct {
	Name     string // for people; "": the type of the executor
	Executor executor.Executor
	Err      error // then Executor is ignored
}

// problem says what is wrong with a Config, and the way out.
func problem(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
}

// isNil also finds a typed nil pointer, which a constructor that failed leaves in an interface.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Slice, reflect.Chan:
		return r.IsNil()
	}
	return false
}

// check names everything that is missing or cannot be. It looks at no file.
func (c *Config) check() error {
	var all *multierror.Error
	for _, needed := range []struct {
		name, fix string
		missing   bool
	}{
		{"Governor", "open one with runaway.Open", c.Governor == nil},
		{"Tree", "open one with allowlist.OpenTree", c.Tree == nil},
		{"Edits", "load a policy with allowlist.LoadFile", c.Edits == nil},
		{"Store", "open one with rollback.Open", c.Store == nil},
		{"Executors", "name at least one, such as bubblewrap", len(c.Executors) == 0},
		{"Run.Args", "say what is executed for each variant", len(c.Run.Args) == 0},
		{"Judge", "take GoTest, JUnit, TAP or one of your own; ExitStatus, knowingly", isNil(c.Judge)},
		{"StateDir", "name a directory outside of the tree", c.StateDir == ""},
	} {
		if needed.missing {
			all = multierror.Append(all, problem("%s is missing: %s", needed.name, needed.fix))
		}
	}
	for _, own := range []struct {
		name string
		set  bool
	}{
		{"ArtifactDir", c.Run.ArtifactDir != ""}, {"Overlay", c.Run.Overlay != ""}, {"Label", c.Run.Label != ""},
		{"Stdin", c.Run.Stdin != nil},
	} {
		if own.set {
			all = multierror.Append(all, problem("Run.%s belongs to the boundary: leave it empty", own.name))
		}
	}
	if c.MinTier > TierKernel {
		all = multierror.Append(all, problem("MinTier %v is no tier", c.MinTier))
	}
	if c.Governor != nil {
		if id := c.Governor.Status().RunID; id == "" || c.RunID != "" && c.RunID != id {
			all = multierror.Append(all, problem("RunID %q is not that of the governor, %q: leave it empty", c.RunID, id))
		}
	}
	if c.Store != nil {
		if left := c.Store.Excluded(); len(left) > 0 {
			all = multierror.Append(all, problem("Store leaves out %q: what a variant makes there could not be taken back; "+
				"open it with an empty, non-nil Options.Exclude", left))
		}
		if c.Store.Foreign() != rollback.ForeignQuarantine {
			all = multierror.Append(all, problem("Store stops at what it does not know, so a variant could block its own "+
				"rollback with a name or a depth: open it with Options.Foreign: rollback.ForeignQuarantine"))
		}
		if !c.Store.Durable() {
			all = multierror.Append(all, problem("Store does not survive a power cut, and the decision log does, so it could "+
				"name a checkpoint that is gone: open it with Options.Sync: rollback.SyncDurable, the default"))
		}
	}
	all = multierror.Append(all, c.checkJudge()...)
	return all.ErrorOrNil()
}

// checkJudge compares what the judge needs with what every run will have.
func (c *Config) checkJudge() (all []error) {
	d, ok := c.Judge.(Demanding)
	if !ok || isNil(c.Judge) {
		return nil
	}
	needs := d.Needs()
	for _, arg := range needs.Args {
		if !slices.Contains(c.Run.Args, arg) {
			all = append(all, problem("the judge needs %q among Run.Args: add it", arg))
		}
	}
	for _, path := range needs.Artifacts {
		taken := slices.ContainsFunc(c.Run.Artifacts, func(pattern string) bool {
			ok, err := doublestar.Match(pattern, path)
			return ok && err == nil
		})
		if !taken {
			all = append(all, problem("the judge needs %q: add it to Run.Artifacts", path))
		}
	}
	return all
}

// errNoExecutor is the reason of a candidate that has neither an executor nor an error.
var errNoExecutor = errors.New("there is no executor: give what the constructor returned")
