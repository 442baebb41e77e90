// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"strings"
)

// Why says how a step ended. The zero value says nothing and is never a reason to keep a variant.
type Why uint8

// The reasons, in the order of the stages at which they arise.
const (
	WhyUnknown          Why = iota
	WhyDenied               // the decision or its proof does not hold any more, or the governor refused the call
	WhyStopped              // the governor has stopped the run
	WhyCancelled            // the caller's context ended
	WhyIterationTimeout     // the iteration took longer than it may
	WhyGenerateFailed       // the generator gave an error, panicked, ended its goroutine or did not return
	WhyEmpty                // no edit, or none that changes anything
	WhySeen                 // this variant was proposed before
	WhyEditDenied           // the policy does not allow an edit
	WhyStaleBase            // an edit was made against other content than what is there
	WhyTooLarge             // the edits are larger than the policy allows
	WhyTreeDrift            // the tree was not what was accepted last
	WhyCheckpointFailed     // the tree could not be read, or the checkpoint is not there
	WhyStateFailed          // the decision log could not be written
	WhyApplyFailed          // the edits could not be written
	WhyPlanMismatch         // the tree differs from the checkpoint in something else than the plan
	WhyRunFailed            // there is no verdict of the executor
	WhyTimeout              // the run passed its wall or CPU time
	WhyLimit                // the run met another limit
	WhySandboxLost          // the executor is gone, did not return, or left something behind
	WhyTampered             // the tree changed while the variant ran
	WhyRejected             // the judge does not want it
	WhyNoResult             // the run left nothing to judge by
	WhyJudgeFailed          // the judge gave an error, panicked or did not return
	WhyPanicked             // something else of the host panicked or ended its goroutine
	WhyKept                 // the variant is the accepted tree now
	WhyRestored             // the tree is again what was accepted last
	WhyTreeUnknown          // it could not be restored; nothing goes on
)

var whyNames = []string{"unknown", "denied", "stopped", "cancelled", "iteration-timeout", "generate-failed", "empty",
	"seen", "edit-denied", "stale-base", "too-large", "tree-drift", "checkpoint-failed", "state-failed", "apply-failed",
	"plan-mismatch", "run-failed", "timeout", "limit", "sandbox-lost", "tampered", "rejected", "no-result",
	"judge-failed", "panicked", "kept", "restored", "tree-unknown"}

// String returns the name, such as "plan-mismatch".
func (w Why) String() string { return named(w, whyNames) }

// MarshalText writes the name; a value that is not defined is written as "unknown".
func (w Why) MarshalText() ([]byte, error) { return []byte(whyNames[defined(w, whyNames)]), nil }

// UnmarshalText reads a name; another text matches [ErrName].
func (w *Why) UnmarshalText(text []byte) error { return parse(w, "reason", text, whyNames) }

// Reason is one of the reasons for which a step ended as it did.
type Reason struct {
	Why Why `json:"why"`
	// Detail is for people: which path, which limit, which error. It can hold words of the variant, so print it with %q.
	// At most 480 bytes.
	Detail string `json:"detail,omitempty"`
}

// What a hostile generator can put into a verdict through error texts, in bytes and in number. A record of the log holds
// 64 KiB, and a byte can become six in JSON.
const (
	maxDetail  = 480
	maxReasons = 16
)

// String returns the name and, if there is one, the detail.
func (r Reason) String() string {
	if r.Detail == "" {
		return r.Why.String()
	}
	return fmt.Sprintf("%v: %q", r.Why, r.Detail)
}

// because makes a reason of an error.
func because(w Why, err error) Reason {
	if err == nil {
		return Reason{Why: w}
	}
	return Reason{w, clip(err.Error())}
}

// clip makes a text short and valid, since it becomes JSON.
func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxDetail)], "")
}
