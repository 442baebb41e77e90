// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/runaway"
)

// Status is what a boundary knows, at one moment.
type Status struct {
	RunID    string
	Required Tier     // what is enforced
	Decision Decision // what the rules ask for
	Executor string   // the candidate in use
	Proven   executor.Capability
	Report   Report // the evidence

	Checkpoint rollback.ID // of the accepted tree
	Tree       string      // its digest
	GateFiles  []string    // of which every run gets a trusted copy
	Stage      Stage       // of the step that is under way; StageNone: there is none
	Closed     bool
	Lost       error  // matches ErrTreeUnknown; nil: the tree is known
	LogHead    string // of the decision log: keep it elsewhere to notice one that was put back or cut
	Governor   runaway.Status
}

// Status also works after Close; that of the zero Boundary is zero. It waits for no step.
func (b *Boundary) Status() Status {
	if b == nil || b.log == nil {
		return Status{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return Status{
		RunID: b.c.RunID, Required: b.decided.Required, Decision: b.decided.Decision, Executor: b.proof.name,
		Proven: b.proof.report.Proven, Report: b.proof.report,
		Checkpoint: b.accepted.id, Tree: b.accepted.text(), GateFiles: b.gate.names(), Stage: b.stage, Closed: b.closed,
		Lost: b.lost, LogHead: b.log.Head(), Governor: b.c.Governor.Status(),
	}
}
