// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoseal/containment/executor"
)

// settleInput is everything that has a say in what is enforced.
type settleInput struct {
	model    TrustModel // merged with what was observed
	decision Decision   // about that model
	latched  []Fired    // what fired earlier in this run and was not cleared
	min      Tier       // Config.MinTier; TierInvalid: none
	override *Override
	approval *Approval

	usedOverride  string            // digest of the override that this run has had
	usedApprovals map[string]string // model hash to digest of the approval that this run has had for it

	runID string
	tree  string // the directory that variants change, free of links; "": not known yet
	now   time.Time
}

// settled is what is enforced.
type settled struct {
	Decision Decision // with what is latched
	Required Tier     // with MinTier and the override
	Needs    executor.Capability
	Until    time.Time // when the override or the approval ends, whichever is first; zero: neither was used
	Override string    // digest of the one that was used
	Approval string    // digest of the one that was used
	Missing  []error   // why nothing may run
}

// required is the tier before an override.
func (in settleInput) required(fired []Fired) Tier {
	if len(fired) > 0 {
		return max(in.decision.Required, TierContainer)
	}
	return in.decision.Required
}

// settle is pure, like Decide: what was recorded and what time it is are arguments.
func settle(in settleInput) settled {
	s := settled{Decision: withLatched(in)}
	s.Required = in.required(s.Decision.Fired)
	if in.override != nil {
		if err := permitError("override", in.override.origin.path, in.override.check(in, s.Decision.Fired)); err != nil {
			s.Missing = append(s.Missing, err)
		} else {
			s.Required, s.Override, s.Until = in.override.To, in.override.origin.digest, in.override.Expires
		}
	}
	if defined(in.min, tierNames) != in.min {
		s.Missing = append(s.Missing, fmt.Errorf("%w: MinTier %v is no tier", ErrConfig, in.min))
	}
	s.Required = max(s.Required, defined(in.min, tierNames))
	s.Needs = s.Required.Needs()
	switch {
	case !s.Decision.Approval:
	case in.approval == nil:
		s.Missing = append(s.Missing, fmt.Errorf("%w: a person has to approve: load an approval for run %q with modelHash %s",
			ErrPermit, in.runID, in.decision.ModelHash))
	default:
		err := permitError("approval", in.approval.origin.path, in.approval.check(in, s.Decision))
		if err != nil {
			s.Missing = append(s.Missing, err)
			break
		}
		s.Approval = in.approval.origin.digest
		if s.Until.IsZero() || in.approval.Expires.Before(s.Until) {
			s.Until = in.approval.Expires
		}
	}
	return s
}

// withLatched adds to the decision what fired earlier, with everything that followed from it.
func withLatched(in settleInput) Decision {
	d := in.decision
	d.Fired = slices.Clone(d.Fired)
	for _, f := range in.latched {
		same := func(g Fired) bool { return g.Trigger == f.Trigger && g.Fact == f.Fact && g.Value == f.Value }
		if slices.ContainsFunc(d.Fired, same) {
			continue
		}
		f.Latched = true
		d.Fired = append(d.Fired, f)
		adversarial := f.Trigger == TriggerGeneration && f.Value == generatorNames[Adversarial]
		unwatched := f.Trigger == TriggerGeneration && defined(in.model.Unattended, answerNames) != No
		if adversarial || f.Trigger == TriggerCombined {
			d.Advised = TierKernel
		}
		if adversarial || unwatched || f.Trigger >= TriggerCombined || f.Trigger == TriggerUnknown {
			d.Approval = true
		}
	}
	d.NotFired = slices.DeleteFunc(slices.Clone(d.NotFired), func(t Trigger) bool {
		return slices.ContainsFunc(d.Fired, func(f Fired) bool { return f.Trigger == t })
	})
	d.Required = in.required(d.Fired)
	d.Advised = max(d.Advised, d.Required)
	d.Needs = d.Required.Needs()
	return d
}
