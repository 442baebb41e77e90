// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"encoding/json"
	"fmt"
	"time"
)

// Op says what a record is about.
type Op uint8

// The kinds of record.
const (
	OpOpen     Op = iota + 1 // a session begins: Limits. Iterations that are open end as Failed
	OpBegin                  // Iteration begins, Parent's child; Usage is reserved
	OpSpend                  // Usage was spent by Iteration, on top of what was
	OpSeen                   // Head is a variant that was asked about
	OpEnd                    // Iteration ends: Kind, Scored, Score, Head, Class; Usage is charged in all
	OpStop                   // Reason, Limit, Value, Detail, Drain
	OpPause                  // Detail
	OpResume                 // By, Detail
	OpAmend                  // By, Detail; Reason is the stop that is lifted; Limits
	OpChild                  // a child governor Scope, in Iteration of its parent: Limits
	OpTick                   // time has passed
	OpClose                  // the session ends
	OpTorn                   // an unfinished record was cut off; never appended by a governor
	OpSnapshot               // Snapshot replaces everything before
	opEnd
)

var opNames = [opEnd]string{
	"", "open", "begin", "spend", "seen", "end", "stop", "pause", "resume", "amend", "child", "tick", "close", "torn",
	"snapshot",
}

// String returns the name of the operation, as in the journal.
func (o Op) String() string {
	if o == 0 || o >= opEnd {
		return fmt.Sprintf("op(%d)", uint8(o))
	}
	return opNames[o]
}

// MarshalText writes the name.
func (o Op) MarshalText() ([]byte, error) {
	if o == 0 || o >= opEnd {
		return nil, fmt.Errorf("runaway: %v is not an operation", o)
	}
	return []byte(opNames[o]), nil
}

// UnmarshalText reads a name and refuses any other text.
func (o *Op) UnmarshalText(text []byte) error {
	for i, name := range opNames {
		if i > 0 && name == string(text) {
			*o = Op(i)
			return nil
		}
	}
	return fmt.Errorf("runaway: %q is not an operation", text)
}

// Record is one thing that happened to a run. All that a governor knows follows from its records. Which fields a record
// uses is said at its Op.
type Record struct {
	Op        Op              `json:"op"`
	At        time.Time       `json:"at"`               // wall clock
	Active    time.Duration   `json:"active,omitempty"` // active time of the run so far, in nanoseconds; never falls
	Scope     string          `json:"scope,omitempty"`  // which governor: "" is the run itself
	Iteration int             `json:"n,omitempty"`
	Parent    int             `json:"parent,omitempty"` // iteration of the parent governor
	Usage     Usage           `json:"usage,omitzero"`
	Kind      Kind            `json:"kind,omitempty"`
	Scored    bool            `json:"scored,omitempty"`
	Score     float64         `json:"-"` // in JSON "score", unless it is not a number
	Head      Fingerprint     `json:"head,omitzero"`
	Class     string          `json:"class,omitempty"`
	Reason    Reason          `json:"reason,omitempty"`
	Limit     string          `json:"limit,omitempty"`
	Value     string          `json:"value,omitempty"`
	Drain     bool            `json:"drain,omitempty"`
	By        string          `json:"by,omitempty"`
	Detail    string          `json:"detail,omitempty"`
	Limits    *Limits         `json:"limits,omitempty"`
	Snapshot  json.RawMessage `json:"snapshot,omitempty"`
}
