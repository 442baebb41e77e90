// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// logState is what a log must not forget. It is folded from the records alone, so that it is the same after a restart.
// Its maps and slices are never changed in place: a record that could not be written leaves the old state as it was.
type logState struct {
	latched       []Fired
	latchedAt     map[Trigger]time.Time // when it fired last
	usedOverride  string
	usedApprovals map[string]string
	decision      string // the body of the last decision
	tree          string // that it was made for; "": not known
}

// decisionBody is the body of RecordDecision.
type decisionBody struct {
	Model    TrustModel `json:"model"` // merged
	Decision Decision   `json:"decision"`
	Required Tier       `json:"required"` // what is enforced
	MinTier  Tier       `json:"minTier"`
	Tree     string     `json:"tree,omitempty"`     // free of links
	Override string     `json:"override,omitempty"` // digests
	Approval string     `json:"approval,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	Missing  []string   `json:"missing,omitempty"` // why nothing ran
}

// permitBody is the body of RecordOverride, RecordApproval and RecordClear.
type permitBody struct {
	Digest string `json:"digest"`
	Path   string `json:"path"`
	ByRoot bool   `json:"byRoot"` // the loop runs as root and could have written the file
	// One of them:
	Override *Override `json:"override,omitempty"`
	Approval *Approval `json:"approval,omitempty"`
	Clear    *Clear    `json:"clear,omitempty"`
}

func (o origin) body() permitBody {
	return permitBody{Digest: o.digest, Path: o.path, ByRoot: o.byRoot}
}

// add takes a record into account. One that cannot be understood is an error: it may have been the one that matters.
func (s *logState) add(r Record) error {
	var err error
	switch r.Kind {
	case RecordDecision:
		var b decisionBody
		if err = json.Unmarshal(r.Body, &b); err == nil {
			s.decided(b, r.At)
			s.decision, s.tree = string(r.Body), b.Tree
		}
	case RecordOverride, RecordApproval, RecordClear:
		var b permitBody
		if err = json.Unmarshal(r.Body, &b); err == nil {
			err = s.permitted(r.Kind, b)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %v of %s: %w", ErrLog, r.Kind, r.At.Format(time.RFC3339), err)
	}
	return nil
}

// decided latches what fired.
func (s *logState) decided(b decisionBody, at time.Time) {
	latched, times := slices.Clone(s.latched), maps.Clone(s.latchedAt)
	if times == nil {
		times = map[Trigger]time.Time{}
	}
	for _, f := range b.Decision.Fired {
		if f.Latched {
			continue // it is there already
		}
		times[f.Trigger] = at
		same := func(g Fired) bool { return g.Trigger == f.Trigger && g.Fact == f.Fact && g.Value == f.Value }
		if !slices.ContainsFunc(latched, same) {
			latched = append(latched, f)
		}
	}
	s.latched, s.latchedAt = latched, times
}

func (s *logState) permitted(kind RecordKind, b permitBody) error {
	switch {
	case kind == RecordOverride && b.Override != nil && b.Digest != "":
		s.usedOverride = b.Digest
	case kind == RecordApproval && b.Approval != nil && b.Digest != "":
		used := maps.Clone(s.usedApprovals)
		if used == nil {
			used = map[string]string{}
		}
		used[b.Approval.ModelHash] = b.Digest
		s.usedApprovals = used
	case kind == RecordClear && b.Clear != nil:
		s.latched = slices.DeleteFunc(slices.Clone(s.latched), func(f Fired) bool {
			return slices.Contains(b.Clear.Triggers, f.Trigger)
		})
		times := maps.Clone(s.latchedAt)
		for _, t := range b.Clear.Triggers {
			delete(times, t)
		}
		s.latchedAt, s.decision = times, ""
	default:
		return fmt.Errorf("it holds no such object")
	}
	return nil
}

// decideInput is what a boundary decides on. Nothing in it is kept.
type decideInput struct {
	trust    TrustModel
	observed Observed
	min      Tier
	override *Override
	approval *Approval
	tree     string // free of links
}

// decide is the one way from a model to a tier: it merges, decides, adds what is latched, applies the permits, and
// records all of that durably before anybody acts on it. If it is what the last record says, nothing is written. The
// error is a *DenyError, or matches ErrLog.
func (l *Log) decide(in decideInput) (settled, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	model := in.trust.Merge(in.observed)
	s := settle(settleInput{
		model: model, decision: Decide(model), latched: l.state.latched, min: in.min,
		override: in.override, approval: in.approval,
		usedOverride: l.state.usedOverride, usedApprovals: l.state.usedApprovals,
		runID: l.runID, tree: in.tree, now: time.Now(),
	})
	body := decisionBody{Model: model, Decision: s.Decision, Required: s.Required, MinTier: in.min, Tree: in.tree,
		Override: s.Override, Approval: s.Approval}
	if !s.Until.IsZero() {
		body.Until = &s.Until
	}
	for _, m := range s.Missing {
		body.Missing = append(body.Missing, m.Error())
	}
	if err := l.recordDecision(in, body); err != nil {
		return settled{}, err
	}
	if len(s.Missing) > 0 {
		return settled{}, &DenyError{Decision: s.Decision, Required: s.Required, Observed: in.observed, Missing: s.Missing}
	}
	return s, nil
}

// recordDecision writes what led to a decision, what it is, and what was used for it; the last one is durable, and so
// are the others then. The permits come first: a crash in between has used one up, and never used one unrecorded.
func (l *Log) recordDecision(in decideInput, body decisionBody) error {
	text, err := json.Marshal(body)
	switch {
	case l.j == nil:
		return ErrClosed
	case err != nil:
		return logError(err)
	case string(text) == l.state.decision:
		return nil
	}
	if _, err := l.append(RecordObservation, in.observed, false); err != nil {
		return err
	}
	if body.Override != "" {
		b := in.override.origin.body()
		b.Override = in.override
		if _, err := l.append(RecordOverride, b, false); err != nil {
			return err
		}
		l.say(slog.LevelWarn, "isolation: an override lowers the required tier", "from", in.override.From.String(),
			"to", in.override.To.String(), "approver", in.override.Approver, "reason", in.override.Reason,
			"expires", in.override.Expires, "byRoot", b.ByRoot)
	}
	if body.Approval != "" {
		b := in.approval.origin.body()
		b.Approval = in.approval
		if _, err := l.append(RecordApproval, b, false); err != nil {
			return err
		}
		l.say(slog.LevelWarn, "isolation: a person has approved", "approver", in.approval.Approver,
			"reason", in.approval.Reason, "expires", in.approval.Expires, "byRoot", b.ByRoot)
	}
	if _, err = l.append(RecordDecision, body, true); err != nil {
		return err
	}
	l.say(slog.LevelInfo, "isolation: decided", "required", body.Required.String(), "fired", len(body.Decision.Fired),
		"approval", body.Decision.Approval, "missing", len(body.Missing))
	return nil
}

// ClearLatch ends the latch of the triggers that a clear names, durably. Nobody else may have the log open, so it is
// done between two sessions of a run. The clear must lie outside of the tree that the last decision was made for. It
// returns a [*PermitError] if the clear does not hold, and [ErrLog] if there is no log.
func ClearLatch(dir, runID string, c *Clear) error {
	if c == nil {
		return permitError("clear", "", []error{errNotLoaded})
	}
	l, err := OpenLog(dir, runID, &LogOptions{MustExist: true})
	if err != nil {
		return err
	}
	in := settleInput{runID: runID, tree: l.state.tree, now: time.Now()}
	if err = permitError("clear", c.origin.path, c.check(in, l.state.latchedAt)); err == nil {
		b := c.origin.body()
		b.Clear = c
		_, err = l.append(RecordClear, b, true)
	}
	return errors.Join(err, l.Close())
}
