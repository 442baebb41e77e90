// SPDX-License-Identifier: Apache-2.0

package runaway

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Kind classifies how an iteration ended. All but Accepted and Neutral are failures, and so is every value that is not
// defined here.
type Kind uint8

// The kinds.
const (
	Unknown     Kind = iota // nobody said: a failure
	Accepted                // the variant was kept
	Rejected                // it was judged and not kept
	RolledBack              // it was kept for a while and taken back
	Failed                  // no variant, or no judgement, because of an error
	TimedOut                // it took longer than it may
	Panicked                // the host's step panicked
	Duplicate               // the variant had been seen before
	SandboxLost             // what should contain the variant is gone
	Neutral                 // not judged, through no fault of the generator: provider refused, operator cancelled
	kindEnd
)

var kindNames = [kindEnd]string{
	"unknown", "accepted", "rejected", "rolled-back", "failed", "timed-out", "panicked", "duplicate", "sandbox-lost",
	"neutral",
}

// String returns the name of the kind, as in the journal.
func (k Kind) String() string {
	if k >= kindEnd {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// MarshalText writes the name; a value that is not defined is "unknown".
func (k Kind) MarshalText() ([]byte, error) { return []byte(kindNames[k.classified()]), nil }

// UnmarshalText reads a name and refuses any other text.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, name := range kindNames {
		if name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("runaway: %q is not a kind of outcome", text)
}

// Failure reports whether the kind counts as a failure.
func (k Kind) Failure() bool { return k != Accepted && k != Neutral }

func (k Kind) classified() Kind {
	if k >= kindEnd {
		return Unknown
	}
	return k
}

// Outcome is how an iteration ended. Its zero value is a failure.
type Outcome struct {
	Kind   Kind
	Score  float64     // used only if Scored; larger is better
	Scored bool        // a run that has once reported a score is expected to go on
	Head   Fingerprint // the accepted state; without it, oscillation cannot be seen
	Class  string      // error class, masked by the host, at most 128 bytes; "" is no class
}

// The largest texts that the journal takes. A text that is longer is cut, since an iteration must end all the same.
const (
	maxClass  = 128
	maxDetail = 1024
)

// clean makes the outcome fit for the journal.
func (o *Outcome) clean() {
	o.Kind = o.Kind.classified()
	o.Class = clip(o.Class, maxClass)
	if !o.Scored || math.IsNaN(o.Score) || math.IsInf(o.Score, 0) {
		o.Score = math.NaN() // no number can be compared with it, so it is never an improvement
	}
}

// clip makes a text valid UTF-8 of at most so many bytes.
func clip(s string, most int) string {
	if len(s) <= most && utf8.ValidString(s) {
		return s
	}
	s = strings.ToValidUTF8(s[:min(len(s), most)], "")
	return s[:min(len(s), most)]
}
