// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/runaway"
)

// endings are the ways in which a step can end, one for each reason of each stage.
type ending struct {
	prepare func(s *scene) // before the boundary is opened
	propose func(s *scene) isolation.Proposal
	stage   isolation.Stage
	why     []isolation.Why
	kind    runaway.Kind
	err     error // of Try; nil: a verdict and nothing else
}

func result(f func(spec executor.Spec) (*executor.Result, error)) func(s *scene) {
	return func(s *scene) {
		s.fake.run = func(_ context.Context, spec executor.Spec) (*executor.Result, error) { return f(spec) }
	}
}

func cause(c executor.Cause) func(s *scene) {
	return result(func(executor.Spec) (*executor.Result, error) { return &executor.Result{Cause: c, ExitCode: -1}, nil })
}

func failing(err error) func(s *scene) {
	return result(func(executor.Spec) (*executor.Result, error) { return nil, err })
}

func judging(f judge) func(s *scene) { return func(s *scene) { s.config.Judge = f } }

func good(s *scene) isolation.Proposal { return s.good("1") }

func generating(f func(s *scene) generator) func(s *scene) isolation.Proposal {
	return func(s *scene) isolation.Proposal { return isolation.Proposal{Generate: f(s)} }
}

var errAny = errors.New("something went wrong")

var (
	kept     = isolation.WhyKept
	restored = isolation.WhyRestored
)

func endings() map[string]ending {
	return map[string]ending{
		"kept": {nil, good, isolation.StageSettle, []isolation.Why{kept}, runaway.Accepted, nil},
		"generator fails": {nil, generating(func(*scene) generator {
			return func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) { return nil, errAny }
		}), isolation.StagePropose, []isolation.Why{isolation.WhyGenerateFailed}, runaway.Failed, nil},
		"generator panics": {nil, generating(func(*scene) generator {
			return func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) { panic("no") }
		}), isolation.StagePropose, []isolation.Why{isolation.WhyGenerateFailed}, runaway.Panicked, nil},
		"generator ends its goroutine": {nil, generating(func(*scene) generator {
			return func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) { runtime.Goexit(); return nil, nil }
		}), isolation.StagePropose, []isolation.Why{isolation.WhyGenerateFailed}, runaway.Panicked, nil},
		"generator gives nothing": {nil, generating(func(*scene) generator {
			return func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) { return nil, nil }
		}), isolation.StagePropose, []isolation.Why{isolation.WhyEmpty}, runaway.Failed, nil},
		"generator writes by itself": {nil, generating(func(s *scene) generator {
			return func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) {
				s.write("gate/check.sh", "exit 0\n")
				return s.good("1").Edits, nil
			}
		}), isolation.StageCheckpoint, []isolation.Why{isolation.WhyTreeDrift, restored}, runaway.Failed, nil},
		"generator writes and proposes nothing": {nil, generating(func(s *scene) generator {
			return func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) {
				s.write("src/new.txt", "mine\n")
				return nil, nil
			}
		}), isolation.StagePropose, []isolation.Why{isolation.WhyEmpty, isolation.WhyTreeDrift, restored}, runaway.Failed, nil},
		"edit changes nothing": {nil, func(s *scene) isolation.Proposal {
			return isolation.Proposal{Edits: []allowlist.Edit{s.modify("src/a.txt", files["src/a.txt"])}}
		}, isolation.StagePlan, []isolation.Why{isolation.WhyEmpty}, runaway.Failed, nil},
		"edit of the gate": {nil, func(s *scene) isolation.Proposal {
			return isolation.Proposal{Edits: []allowlist.Edit{s.modify("gate/check.sh", "exit 0\n"), s.modify("README", "x\n")}}
		}, isolation.StagePlan, []isolation.Why{isolation.WhyEditDenied, isolation.WhyEditDenied}, runaway.Rejected, nil},
		"stale base": {nil, func(*scene) isolation.Proposal {
			return isolation.Proposal{Edits: []allowlist.Edit{{Op: allowlist.Modify, Path: "src/a.txt", Content: []byte("x"),
				Base: allowlist.Sum([]byte("another"))}}}
		}, isolation.StagePlan, []isolation.Why{isolation.WhyStaleBase}, runaway.Rejected, nil},
		"too large": {nil, func(s *scene) isolation.Proposal {
			return isolation.Proposal{Edits: []allowlist.Edit{s.modify("src/a.txt", string(make([]byte, 2<<20)))}}
		}, isolation.StagePlan, []isolation.Why{isolation.WhyTooLarge}, runaway.Rejected, nil},
		"drift": {nil, func(s *scene) isolation.Proposal {
			p := s.good("1")
			s.write("src/deep/c.txt", "somebody else\n")
			return p
		}, isolation.StageCheckpoint, []isolation.Why{isolation.WhyTreeDrift, restored}, runaway.Failed, nil},
		"somebody writes between apply and seal": {func(s *scene) {
			s.hooks.At = func(point string) {
				if point == "seal" {
					s.write("src/b.txt", "unplanned\n")
				}
			}
		}, good, isolation.StageSeal, []isolation.Why{isolation.WhyPlanMismatch, restored}, runaway.Failed, nil},
		"run fails": {failing(errAny), good, isolation.StageRun, []isolation.Why{isolation.WhyRunFailed, restored},
			runaway.Failed, nil},
		"set-up fails": {failing(&executor.SetupError{Step: "mount", Err: errAny}), good, isolation.StageRun,
			[]isolation.Why{isolation.WhyRunFailed, restored}, runaway.Failed, nil},
		"no result and no error": {failing(nil), good, isolation.StageRun,
			[]isolation.Why{isolation.WhyRunFailed, restored}, runaway.Failed, nil},
		"zero result": {cause(executor.CauseUnknown), good, isolation.StageRun,
			[]isolation.Why{isolation.WhyRunFailed, restored}, runaway.Failed, nil},
		"wall time": {cause(executor.CauseWallTimeout), good, isolation.StageRun,
			[]isolation.Why{isolation.WhyTimeout, restored}, runaway.TimedOut, nil},
		"CPU time": {cause(executor.CauseCPUTimeout), good, isolation.StageRun,
			[]isolation.Why{isolation.WhyTimeout, restored}, runaway.TimedOut, nil},
		"memory": {cause(executor.CauseOutOfMemory), good, isolation.StageRun,
			[]isolation.Why{isolation.WhyLimit, restored}, runaway.Failed, nil},
		"program not found": {cause(executor.CauseNotFound), good, isolation.StageRun,
			[]isolation.Why{isolation.WhyRunFailed, restored}, runaway.Failed, nil},
		"cancelled without a reason": {cause(executor.CauseCancelled), good, isolation.StageRun,
			[]isolation.Why{isolation.WhyRunFailed, restored}, runaway.Failed, nil},
		"sandbox lost": {failing(fmt.Errorf("x: %w", executor.ErrLost)), good, isolation.StageRun,
			[]isolation.Why{isolation.WhySandboxLost, restored}, runaway.SandboxLost, nil},
		"clean-up left something": {failing(&executor.CleanupError{Remains: []error{errAny}}), good, isolation.StageRun,
			[]isolation.Why{isolation.WhySandboxLost, restored}, runaway.SandboxLost, nil},
		"capability vanished": {failing(executor.ErrUnsupported), good, isolation.StageRun,
			[]isolation.Why{isolation.WhySandboxLost, restored}, runaway.SandboxLost, nil},
		"executor panics": {result(func(executor.Spec) (*executor.Result, error) { panic("no") }), good, isolation.StageRun,
			[]isolation.Why{isolation.WhySandboxLost, restored}, runaway.Failed, runaway.ErrStopped},
		"executor ends its goroutine": {result(func(executor.Spec) (*executor.Result, error) { runtime.Goexit(); return nil, nil }),
			good, isolation.StageRun, []isolation.Why{isolation.WhySandboxLost, restored}, runaway.Failed, runaway.ErrStopped},
		"variant reaches the tree": {result(func(spec executor.Spec) (*executor.Result, error) {
			return ended(0), os.WriteFile(filepath.Join(spec.Workspace, "src", "b.txt"), []byte("escaped\n"), 0o644)
		}), good, isolation.StageVerify, []isolation.Why{isolation.WhyTampered, restored}, runaway.Failed, runaway.ErrStopped},
		"variant reaches its own file and fails": {result(func(spec executor.Spec) (*executor.Result, error) {
			err := os.WriteFile(filepath.Join(spec.Workspace, "src", "a.txt"), []byte("alpha!\n"), 0o644)
			return &executor.Result{Cause: executor.CauseWallTimeout}, err
		}), good, isolation.StageVerify, []isolation.Why{isolation.WhyTimeout, isolation.WhyTampered, restored},
			runaway.TimedOut, runaway.ErrStopped},
		"judge rejects": {nil, func(s *scene) isolation.Proposal { return s.bad("1") }, isolation.StageJudge,
			[]isolation.Why{isolation.WhyRejected, restored}, runaway.Rejected, nil},
		"judge rejects with findings": {judging(func(context.Context, isolation.Evaluation) (isolation.Ruling, error) {
			return isolation.Reject, &isolation.RejectError{Findings: []isolation.Finding{{Kind: isolation.FindingFailed}}}
		}), good, isolation.StageJudge, []isolation.Why{isolation.WhyRejected, restored}, runaway.Rejected, nil},
		"no report": {judging(func(context.Context, isolation.Evaluation) (isolation.Ruling, error) {
			return isolation.Keep, &isolation.RejectError{Findings: []isolation.Finding{{Kind: isolation.FindingNoReport}}}
		}), good, isolation.StageJudge, []isolation.Why{isolation.WhyNoResult, restored}, runaway.Rejected, nil},
		"judge keeps with an error": {judging(func(context.Context, isolation.Evaluation) (isolation.Ruling, error) {
			return isolation.Keep, errAny
		}), good, isolation.StageJudge, []isolation.Why{isolation.WhyJudgeFailed, restored}, runaway.Failed, nil},
		"judge forges a ruling": {judging(func(context.Context, isolation.Evaluation) (isolation.Ruling, error) {
			return isolation.Ruling(7), nil
		}), good, isolation.StageJudge, []isolation.Why{isolation.WhyRejected, restored}, runaway.Rejected, nil},
		"judge panics": {judging(func(context.Context, isolation.Evaluation) (isolation.Ruling, error) { panic(errAny) }), good,
			isolation.StageJudge, []isolation.Why{isolation.WhyJudgeFailed, restored}, runaway.Panicked, nil},
		"judge ends its goroutine": {judging(func(context.Context, isolation.Evaluation) (isolation.Ruling, error) {
			runtime.Goexit()
			return isolation.Keep, nil
		}), good, isolation.StageJudge, []isolation.Why{isolation.WhyJudgeFailed, restored}, runaway.Panicked, nil},
		"judge writes": {func(s *scene) {
			s.config.Judge = judge(func(context.Context, isolation.Evaluation) (isolation.Ruling, error) {
				s.write("src/b.txt", "judge\n")
				return isolation.Keep, nil
			})
		}, good, isolation.StageSettle, []isolation.Why{isolation.WhyTampered, restored}, runaway.Failed, runaway.ErrStopped},
	}
}

// TestEveryEndingRestores: whatever ends a step, the tree is what was accepted before, or the variant that was kept;
// the verdict, the log and the governor say the same.
func TestEveryEndingRestores(t *testing.T) {
	t.Parallel()
	for name, e := range endings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			if e.prepare != nil {
				e.prepare(s)
			}
			b, closeAll := s.open()
			before := s.state()
			v, err := b.Try(context.Background(), e.propose(s))
			if !errors.Is(err, e.err) || e.err == nil && err != nil {
				t.Errorf("the error is %v, want %v", err, e.err)
			}
			if v == nil {
				t.Fatal("there is no verdict")
			}
			if diff := cmp.Diff(e.why, whys(v)); diff != "" || v.Stage != e.stage {
				t.Errorf("decided in %v, want %v; reasons: %v\n%s", v.Stage, e.stage, v.Reasons, diff)
			}
			accepted := e.kind == runaway.Accepted
			if v.Accepted != accepted || (before == s.state()) == accepted {
				t.Errorf("accepted: %v; the tree:\n%s", v.Accepted, cmp.Diff(before, s.state()))
			}
			if v.Checkpoint != b.Status().Checkpoint || v.Tree != b.Status().Tree || v.Tree == "" {
				t.Errorf("the verdict names another tree: %+v", v)
			}
			closeAll()
			s.sameAsRecorded(v, e.kind)
		})
	}
}

// sameAsRecorded compares a verdict with the last one of the log.
func (s *scene) sameAsRecorded(v *isolation.Verdict, kind runaway.Kind) {
	s.t.Helper()
	got := s.lastVerdict()
	if got.Outcome != kind || got.Accepted != v.Accepted || got.Stage != v.Stage || got.Iteration != v.Iteration ||
		!cmp.Equal(got.Reasons, v.Reasons) {
		s.t.Errorf("the log says %+v, the verdict %+v, and the outcome is %v", got, v, kind)
	}
}

// TestHangingCallsAreAbandoned: what does not return does not keep the step from its end.
func TestHangingCallsAreAbandoned(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for name, c := range map[string]ending{
		"generator": {nil, generating(func(*scene) generator {
			return func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) { <-hang; return nil, nil }
		}), isolation.StagePropose, []isolation.Why{isolation.WhyIterationTimeout, isolation.WhyGenerateFailed}, runaway.TimedOut, nil},
		"judge": {judging(func(context.Context, isolation.Evaluation) (isolation.Ruling, error) {
			<-hang
			return isolation.Keep, nil
		}), good, isolation.StageJudge, []isolation.Why{isolation.WhyJudgeFailed, restored}, runaway.Failed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.limits = runaway.Limits{PerIteration: 400 * time.Millisecond}
			if c.prepare != nil {
				c.prepare(s)
			}
			b, _ := s.open()
			before := s.state()
			v, err := b.Try(context.Background(), c.propose(s))
			if err != nil || v.Accepted {
				t.Fatalf("%+v, %v", v, err)
			}
			if diff := cmp.Diff(c.why, whys(v)); diff != "" || v.Stage != c.stage {
				t.Errorf("stage %v, reasons %v\n%s", v.Stage, v.Reasons, diff)
			}
			if before != s.state() {
				t.Error("the tree is another one")
			}
		})
	}
}
