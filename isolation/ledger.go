// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/evoseal/containment/rollback"
)

// phase says how far a step had come. It is recorded before the act that it names.
type phase string

// The phases. What survives a power cut is only what an action at Open depends on: a baseline, the first intent to
// write, and the decision to keep. All that lies between these leads to the same action, so the order in which it was
// written is enough.
const (
	phaseBaseline   phase = "baseline"   // durable: this checkpoint is the accepted tree, because an operator gave it
	phaseMeasured   phase = "measured"   // durable: what the first accepted tree passes, if the judge compares
	phaseApplying   phase = "applying"   // durable: bytes may be written from now on
	phaseSealed     phase = "sealed"     // the tree differs from the checkpoint by the plan
	phaseRunning    phase = "running"    // the executor was called
	phaseVerified   phase = "verified"   // it returned, and the tree is as sealed
	phaseKept       phase = "kept"       // durable: this checkpoint is the accepted tree from now on
	phaseRestoring  phase = "restoring"  // the accepted tree is being put back
	phaseRestored   phase = "restored"   // it is there again
	phaseUnknown    phase = "unknown"    // durable: it could not be put back
	phaseDifference phase = "difference" // the tree was not the accepted one, and nobody had recorded why
)

// phaseBody is what the log says about a phase.
type phaseBody struct {
	Phase      phase       `json:"phase"`
	Iteration  int         `json:"iteration,omitempty"`
	Checkpoint rollback.ID `json:"checkpoint"` // of the accepted tree: to be restored, or kept from now on
	Content    string      `json:"content"`    // its digests, hexadecimal
	Tree       string      `json:"tree"`
	Plan       string      `json:"plan,omitempty"`
	Safety     string      `json:"safety,omitempty"` // checkpoint of what was replaced
	Detail     string      `json:"detail,omitempty"`
	Mark       *mark       `json:"mark,omitempty"` // what the accepted tree passes at least, from now on
}

// durable tells which phases an action at Open depends on.
func (p phase) durable() bool {
	return p == phaseBaseline || p == phaseMeasured || p == phaseApplying || p == phaseKept || p == phaseUnknown
}

// note records a phase.
func (b *Boundary) note(p phaseBody) error {
	if p.Checkpoint.IsZero() {
		p.Checkpoint, p.Content, p.Tree = b.accepted.body()
	}
	_, err := b.log.record(RecordPhase, p, p.Phase.durable())
	if err != nil {
		return fmt.Errorf("record %q: %w", p.Phase, err)
	}
	return nil
}

// history is what the log says of the tree.
type history struct {
	accepted phaseBody // zero: there never was one
	last     phaseBody
	mark     *mark // the last one; nil: nothing was measured
}

// known reports whether the run has an accepted tree.
func (h *history) known() bool { return !h.accepted.Checkpoint.IsZero() }

// open reports whether a step may have written and had not ended.
func (h *history) open() bool {
	switch h.last.Phase {
	case "", phaseBaseline, phaseMeasured, phaseKept, phaseRestored:
		return false
	}
	return true
}

// readHistory goes through the whole log. A record that cannot be read is an error: it may have been the decision to
// keep.
func readHistory(l *Log) (h history, err error) {
	for rec, err := range l.Records() {
		if err != nil {
			return history{}, err
		}
		if rec.Kind != RecordPhase {
			continue
		}
		var p phaseBody
		if err := json.Unmarshal(rec.Body, &p); err != nil {
			return history{}, fmt.Errorf("%w: record %d: %w", ErrLog, rec.Seq, err)
		}
		if h.last = p; p.Phase == phaseBaseline || p.Phase == phaseKept {
			h.accepted = p
		}
		if p.Mark != nil {
			h.mark = p.Mark
		}
	}
	return h, nil
}

// digest returns what the record says of the accepted tree.
func (p *phaseBody) digest() (d rollback.Digest, err error) {
	for _, part := range []struct {
		text string
		to   []byte
	}{{p.Content, d.Content[:]}, {p.Tree, d.Tree[:]}} {
		raw, err := hex.DecodeString(part.text)
		if err != nil || copy(part.to, raw) != len(part.to) || len(raw) != len(part.to) {
			return d, fmt.Errorf("%w: %q is no digest", ErrLog, part.text)
		}
	}
	return d, nil
}
