// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"strings"
)

// RejectError is why a judge rejected: everything that it found. It matches [ErrRejected], and [ErrNoResult] if one of
// the findings is that there is no report to go by.
type RejectError struct {
	Findings []Finding `json:"findings"`
}

// Finding is one thing that is wrong with an evaluation.
type Finding struct {
	Kind   FindingKind `json:"kind"`
	Test   string      `json:"test,omitempty"` // which test, as in the report, cut to 200 bytes
	Detail string      `json:"detail"`
}

// FindingKind says what is wrong.
type FindingKind uint8

// The findings. Up to FindingForged there is no report that could be believed.
const (
	FindingUnknown    FindingKind = iota
	FindingNoReport               // there is none, or nothing in it
	FindingTooLarge               // the report is larger than its cap, or not whole
	FindingMalformed              // it is not what the format says
	FindingForged                 // it contradicts itself, or the way in which the run ended
	FindingRun                    // the run did not exit by itself with 0, or met a limit
	FindingFailed                 // a test failed
	FindingUnfinished             // a test began and has no result
	FindingSkipped                // a test is skipped that passed before, or is new
	FindingVanished               // a test that passed before is not in the report
	FindingTooFew                 // fewer tests passed than must
	FindingBaseline               // what the accepted tree passes is not known
)

var findingNames = []string{"unknown", "no-report", "too-large", "malformed", "forged", "run", "failed", "unfinished",
	"skipped", "vanished", "too-few", "no-baseline"}

// String returns the name, such as "vanished".
func (k FindingKind) String() string { return named(k, findingNames) }

// MarshalText writes the name.
func (k FindingKind) MarshalText() ([]byte, error) {
	return []byte(findingNames[defined(k, findingNames)]), nil
}

// UnmarshalText reads a name; another text matches [ErrName].
func (k *FindingKind) UnmarshalText(text []byte) error {
	return parse(k, "finding", text, findingNames)
}

// Error lists the findings.
func (e *RejectError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %d finding(s)", ErrRejected, len(e.Findings))
	for _, f := range e.Findings {
		fmt.Fprintf(&b, "\n  %v: ", f.Kind)
		if f.Test != "" {
			fmt.Fprintf(&b, "%q: ", f.Test)
		}
		b.WriteString(f.Detail)
	}
	return b.String()
}

// Is makes the error match [ErrRejected], and [ErrNoResult] where there is no usable report.
func (e *RejectError) Is(target error) bool {
	if target == ErrRejected {
		return true
	}
	if target != ErrNoResult {
		return false
	}
	for _, f := range e.Findings {
		if f.Kind >= FindingNoReport && f.Kind <= FindingForged {
			return true
		}
	}
	return false
}
