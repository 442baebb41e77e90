// SPDX-License-Identifier: Apache-2.0

package runaway

import "fmt"

// Reason says why a run stopped. The zero value is no reason.
type Reason uint8

// The reasons. If several hold at the same moment, the first in this order is the one that is recorded; otherwise the
// one that came first.
const (
	ReasonKillFile            Reason = iota + 1 // the kill file is there, or whether it is cannot be told
	ReasonOperator                              // Governor.Stop
	ReasonState                                 // the journal could not be written: what is not recorded must not be
	ReasonIsolation                             // the host's sandbox did not hold; given to Governor.Stop
	ReasonDeadline                              // Limits.Deadline
	ReasonWall                                  // Limits.Wall
	ReasonIdle                                  // Limits.Idle
	ReasonCost                                  // Limits.Budget
	ReasonTokens                                // Limits.Budget
	ReasonCalls                                 // Limits.Budget
	ReasonCPU                                   // Limits.Budget
	ReasonRate                                  // Limits.MaxRate
	ReasonIterations                            // Limits.MaxIterations
	ReasonConsecutiveFailures                   // Limits.MaxConsecutiveFailures
	ReasonFailureRate                           // Limits.MaxFailures
	ReasonSameClass                             // Limits.MaxSameClass
	ReasonDuplicates                            // Limits.MaxDuplicates
	ReasonOscillation                           // Limits.MaxCycle
	ReasonNoImprovement                         // Limits.NoImprovement
	ReasonNeutralRow                            // Limits.MaxNeutral
	ReasonCompleted                             // Limits.Iterations: the host has what it asked for
	reasonEnd
)

// reasons holds the name of each reason, which is what the journal has, and the way out of it.
var reasons = [reasonEnd]struct{ name, fix string }{
	ReasonKillFile:            {"kill-file", "remove the file and lift the stop with an Amendment"},
	ReasonOperator:            {"operator", "lift the stop with an Amendment"},
	ReasonState:               {"state", "mend the directory of the state and open the run again"},
	ReasonIsolation:           {"isolation", "find out what got out, then lift the stop with an Amendment"},
	ReasonDeadline:            {"deadline", "set a later Deadline with an Amendment that lifts the stop"},
	ReasonWall:                {"wall", "raise Wall with an Amendment that lifts the stop"},
	ReasonIdle:                {"idle", "find out what hangs, then lift the stop with an Amendment"},
	ReasonCost:                {"cost", "raise Budget.Cost with an Amendment that lifts the stop"},
	ReasonTokens:              {"tokens", "raise Budget.Tokens with an Amendment that lifts the stop"},
	ReasonCalls:               {"calls", "raise Budget.Calls with an Amendment that lifts the stop"},
	ReasonCPU:                 {"cpu", "raise Budget.CPU with an Amendment that lifts the stop"},
	ReasonRate:                {"rate", "find out what spends so fast, then lift the stop with an Amendment"},
	ReasonIterations:          {"iterations", "raise MaxIterations with an Amendment that lifts the stop"},
	ReasonConsecutiveFailures: {"consecutive-failures", "change the generator, then lift the stop with an Amendment"},
	ReasonFailureRate:         {"failure-rate", "change the generator, then lift the stop with an Amendment"},
	ReasonSameClass:           {"same-class", "mend what fails, then lift the stop with an Amendment"},
	ReasonDuplicates:          {"duplicates", "change the generator, then lift the stop with an Amendment"},
	ReasonOscillation:         {"oscillation", "look at the last accepted heads, then lift the stop with an Amendment"},
	ReasonNoImprovement:       {"no-improvement", "change the search, then lift the stop with an Amendment"},
	ReasonNeutralRow:          {"neutral", "find out why nothing is judged, then lift the stop with an Amendment"},
	ReasonCompleted: {"completed",
		"nothing; to ask for more, raise Iterations with an Amendment that lifts the stop"},
}

// String returns the name of the reason, as in the journal.
func (r Reason) String() string {
	if !r.known() {
		return fmt.Sprintf("reason(%d)", uint8(r))
	}
	return reasons[r].name
}

// MarshalText writes the name.
func (r Reason) MarshalText() ([]byte, error) {
	if !r.known() {
		return nil, fmt.Errorf("runaway: %s is not a reason", r)
	}
	return []byte(reasons[r].name), nil
}

// UnmarshalText reads a name and refuses any other text.
func (r *Reason) UnmarshalText(text []byte) error {
	for i := range reasonEnd {
		if i.known() && reasons[i].name == string(text) {
			*r = i
			return nil
		}
	}
	return fmt.Errorf("runaway: %q is not a reason", text)
}

func (r Reason) known() bool { return r > 0 && r < reasonEnd }

// graceful reports whether a run that stopped for this reason did what it should. The host may then exit with 0, and a
// supervisor need not start it again.
func (r Reason) graceful() bool { return r.known() && r != ReasonState && r != ReasonIsolation }
