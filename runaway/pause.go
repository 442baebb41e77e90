// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"fmt"
	"strings"
)

// Approval says who lets a run go on, and why. Both are recorded. Both are needed, at most 256 bytes each.
type Approval struct{ By, Reason string }

// Amendment says who raises a limit or lifts a stop, and why. It is recorded and serves once: the same text does not
// open the run a second time. Both texts are needed, at most 256 bytes each.
type Amendment struct {
	By, Reason string
	Lift       Reason // the stop to lift; 0: only limits are raised
}

const maxApproval = 256

// PauseSandboxLost is what [Status] says about a pause that has no other reason than an iteration that ended as
// SandboxLost. Whoever verified a fresh sandbox may end this one, and no other.
const PauseSandboxLost = "the sandbox was lost: verify a fresh one, then Resume"

func checkApproval(by, reason string) error {
	for _, text := range []string{by, reason} {
		if strings.TrimSpace(text) == "" || text != clip(text, maxApproval) {
			return fmt.Errorf("%w: both are needed, as UTF-8 of at most %d bytes", ErrUnapproved, maxApproval)
		}
	}
	return nil
}

// Pause lets nothing new begin and lets open iterations wait at their next Check. It is recorded, so it outlasts a
// restart, until Resume. A second pause adds its reason to the first. On a child it holds for the child and its
// children.
func (g *Governor) Pause(why string) error {
	r, err := g.enter()
	if err != nil {
		return err
	}
	defer r.unlock()
	return r.pause(g.scope, why)
}

func (r *run) pause(s *scope, why string) error {
	if why = clip(why, maxDetail); why == "" {
		why = "no reason given"
	}
	err := r.commit(&Record{Op: OpPause, Scope: s.Path, Detail: why}, true)
	r.retime()
	r.emit(Event{Kind: EventPause, Scope: s.Path, Detail: why})
	return err
}

// Resume ends what Pause began, and nothing else: a pause file has to be removed, and a stop stays. ErrUnapproved:
// there is no name or no reason, and the pause stays.
func (g *Governor) Resume(a Approval) error {
	if err := checkApproval(a.By, a.Reason); err != nil {
		return err
	}
	r, err := g.enter()
	if err != nil {
		return err
	}
	defer r.unlock()
	s := g.scope
	if s.Paused == "" {
		return nil
	}
	if err := r.commit(&Record{Op: OpResume, Scope: s.Path, By: a.By, Detail: a.Reason}, true); err != nil {
		return err
	}
	s.touch(r.mark)
	r.retime()
	r.broadcast()
	r.sooner(r.now)
	r.emit(Event{Kind: EventResume, Scope: s.Path, By: a.By, Detail: a.Reason})
	return nil
}
