// SPDX-License-Identifier: Apache-2.0

package isolation

// Stage is a part of one guarded step. The order is that in which a step goes through them. The zero value: the step
// did not begin.
type Stage uint8

// The stages.
const (
	StageNone       Stage = iota
	StageBegin            // the decision and its proof still hold, and the governor admits an iteration
	StagePropose          // the generator is asked, or ready-made edits are taken
	StagePlan             // all edits are judged; nothing is written
	StageCheckpoint       // the tree is what was accepted last, and that is kept
	StageApply            // the planned bytes are written
	StageSeal             // what differs from the checkpoint is what was planned
	StageRun              // the executor runs a copy of the tree
	StageVerify           // the tree is still what was sealed
	StageJudge            // the judge rules
	StageSettle           // the variant is kept, or the tree restored
	StageEnd              // the governor is told
)

var stageNames = []string{"none", "begin", "propose", "plan", "checkpoint", "apply", "seal", "run", "verify", "judge",
	"settle", "end"}

// String returns the name, such as "checkpoint".
func (s Stage) String() string { return named(s, stageNames) }

// MarshalText writes the name; a value that is not defined is written as "none".
func (s Stage) MarshalText() ([]byte, error) { return []byte(stageNames[defined(s, stageNames)]), nil }

// UnmarshalText reads a name; another text matches [ErrName].
func (s *Stage) UnmarshalText(text []byte) error { return parse(s, "stage", text, stageNames) }
