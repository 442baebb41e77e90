// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/rollback"
)

// reporting makes the scene one in which every run reports that these tests passed.
func (s *scene) reporting(tests ...string) {
	s.config.Judge = isolation.GoTest{}
	s.config.Run.Args = []string{"go", "test", "-json", "./..."}
	s.fake.run = func(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
		return reported(ctx, spec, tests...)
	}
}

// reported is a run that reports that these tests passed.
func reported(_ context.Context, spec executor.Spec, tests ...string) (*executor.Result, error) {
	var out strings.Builder
	out.WriteString(`{"Action":"start","Package":"p"}` + "\n")
	for _, name := range tests {
		for _, action := range []string{"run", "pass"} {
			fmt.Fprintf(&out, `{"Action":%q,"Package":"p","Test":%q}`+"\n", action, name)
		}
	}
	out.WriteString(`{"Action":"pass","Package":"p"}` + "\n")
	r := ended(0)
	r.Stdout = executor.Output{Total: int64(out.Len())}
	_, err := spec.Stdout.Write([]byte(out.String()))
	return r, err
}

// numbered are so many names of tests that do not compress well.
func numbered(n int) (names []string) {
	for i := range n {
		sum := allowlist.Sum([]byte(fmt.Sprint(i)))
		names = append(names, fmt.Sprintf("Test%x", sum[:]))
	}
	return names
}

// TestBaselineIsNeverLower: an accepted variant that reports fewer tests while it is measured at the next Open, or other
// ones, would lower what all later variants are judged by.
func TestBaselineIsNeverLower(t *testing.T) {
	t.Parallel()
	many := numbered(1200) // more than a record can name
	swapped := append([]string{"TestZ"}, many[1:]...)
	for name, c := range map[string]struct {
		first, kept, later []string // what is reported at Open, by the variant that is kept, and at the next Open
		want               error
	}{
		"the same":             {[]string{"A", "B"}, []string{"A", "B"}, []string{"A", "B"}, nil},
		"more":                 {[]string{"A", "B"}, []string{"A", "B"}, []string{"A", "B", "C"}, nil},
		"fewer than kept":      {[]string{"A", "B"}, []string{"A", "B", "C"}, []string{"A", "B"}, isolation.ErrRejected},
		"fewer, nothing kept":  {[]string{"A", "B"}, nil, []string{"A"}, isolation.ErrRejected},
		"as many others":       {[]string{"A", "B"}, nil, []string{"A", "C"}, isolation.ErrRejected},
		"more, one vanished":   {[]string{"A", "B"}, []string{"A", "B"}, []string{"A", "C", "D"}, isolation.ErrRejected},
		"many, the same":       {many, many, many, nil},
		"many, fewer":          {many, many, many[1:], isolation.ErrRejected},
		"many, as many others": {many, nil, swapped, isolation.ErrRejected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.hooks.Grace = 0 // a judge has much to read
			s.reporting(c.first...)
			b, closeAll := s.open()
			if c.kept != nil {
				s.reporting(c.kept...)
				if v, err := b.Try(t.Context(), s.good("1")); err != nil || !v.Accepted {
					t.Fatalf("%+v, %v", v, err)
				}
			}
			closeAll()
			s.reporting(c.later...)
			for range 2 { // for ever
				b, closeAll, err := s.tryOpen()
				closeAll()
				if (b == nil) != (c.want != nil) || !errors.Is(err, c.want) {
					t.Fatalf("%v, %v", b, err)
				}
			}
			// The operator's report is back: the run goes on.
			if c.want != nil {
				s.reporting(max2(c.first, c.kept)...)
				s.open()
			}
		})
	}
}

func max2(a, b []string) []string {
	if len(b) > len(a) {
		return b
	}
	return a
}

// forgetful measures nothing the second time.
type forgetful struct {
	judge
	calls *int
}

func (f forgetful) Measure(context.Context, isolation.Evaluation) (*isolation.Baseline, error) {
	if *f.calls++; *f.calls == 1 {
		return &isolation.Baseline{Passed: []string{"A", "B\xff"}}, nil
	}
	return &isolation.Baseline{}, nil
}

// TestKeptVariantDoesNotLowerTheBaseline: a judge may measure what it likes of a kept variant.
func TestKeptVariantDoesNotLowerTheBaseline(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	var seen []int
	s.config.Judge = forgetful{func(_ context.Context, e isolation.Evaluation) (isolation.Ruling, error) {
		seen = append(seen, len(e.Baseline.Passed))
		return isolation.Keep, nil
	}, new(int)}
	b, closeAll := s.open()
	for n := range 2 {
		if v, err := b.Try(t.Context(), s.good(fmt.Sprint(n))); err != nil || !v.Accepted {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	if fmt.Sprint(seen) != "[2 2]" {
		t.Errorf("the baselines had %v tests", seen)
	}
	closeAll()
	if b, _, err := s.tryOpen(); b != nil || !errors.Is(err, isolation.ErrRejected) {
		t.Errorf("%v, %v", b, err)
	}
}

// TestStoreThatLosesPowerIsRefused: a decision on the disk must find its checkpoint there.
func TestStoreThatLosesPowerIsRefused(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	if _, err := s.parts(); err != nil {
		t.Fatal(err)
	}
	_ = s.config.Store.Close()
	s.config.Store = must(rollback.Open(filepath.Join(s.home, "store"), &rollback.Options{
		Exclude: []string{}, Foreign: rollback.ForeignQuarantine, Sync: rollback.SyncProcess,
	}))
	defer s.config.Store.Close()
	b, err := isolation.OpenWith(t.Context(), s.config, s.hooks)
	if b != nil || !errors.Is(err, isolation.ErrConfig) {
		t.Errorf("%v, %v", b, err)
	}
	contains(t, err, "SyncDurable")
}

// TestMountsShowNoGuard: neither the store nor the state directory, whole, in part or by a link.
func TestMountsShowNoGuard(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"store": "store", "in the store": "store/packs", "state": "state", "by a link": "link",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			if err := os.Symlink(filepath.Join(s.home, "store"), filepath.Join(s.home, "link")); err != nil {
				t.Fatal(err)
			}
			s.config.Run.Mounts = []executor.Mount{{Source: filepath.Join(s.home, source), Target: "/mnt"}}
			refuses(t, s, "Run.Mounts")
		})
	}
}

// TestRunEnvIsWithinReach: what every run is given is not a secret that must survive it.
func TestRunEnvIsWithinReach(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.config.Run.Env = map[string]string{"LANG": "C", "DEPLOY_TOKEN": "hunter2"}
	b, closeAll, err := s.tryOpen()
	closeAll()
	if b != nil || !errors.Is(err, isolation.ErrDenied) {
		t.Fatalf("%v, %v", b, err)
	}
	var deny *isolation.DenyError
	if !errors.As(err, &deny) || deny.Observed.Secrets != isolation.HighValue {
		t.Fatalf("%v", err)
	}
	seen := deny.Observed.Evidence[isolation.FactSecrets]
	if !strings.Contains(seen, "DEPLOY_TOKEN") || strings.Contains(seen+err.Error(), "hunter2") {
		t.Errorf("the evidence is %q, the error %v", seen, err)
	}
	s.config.Run.Env = map[string]string{"LANG": "C"}
	s.config.Sources.EnvNames, s.config.Sources.Files, s.config.Sources.Sockets = nil, nil, nil
	s.config.Run.Env["DEPLOY_TOKEN"] = "" // where nobody has looked, the fact stays unknown
	if _, _, err := s.tryOpen(); !errors.As(err, &deny) || deny.Observed.Secrets != isolation.SecretsUnknown {
		t.Errorf("%v", err)
	}
}

// TestDeniedStepIsInTheLog: a step that ended before an iteration began.
func TestDeniedStepIsInTheLog(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, closeAll := s.open()
	g := &changing{who: isolation.GeneratorIdentity{Endpoint: "http://localhost:11434"}}
	g.generator = func(context.Context, *isolation.Spender) ([]allowlist.Edit, error) { return s.good("1").Edits, nil }
	v, err := b.Try(t.Context(), isolation.Proposal{Generate: g})
	if !errors.Is(err, isolation.ErrDenied) || v.Stage != isolation.StageBegin || v.Evidence == "" {
		t.Fatalf("%+v, %v", v, err)
	}
	for range 3 { // the run is over: that is recorded once
		if _, err := b.Try(t.Context(), isolation.Proposal{Generate: g}); err == nil {
			t.Error("it goes on")
		}
	}
	closeAll()
	var found []string
	for rec, err := range isolation.ReadLog(s.config.StateDir, "run") {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind == isolation.RecordVerdict {
			found = append(found, string(rec.Body))
		}
	}
	if len(found) != 1 || !strings.Contains(found[0], `"denied"`) {
		t.Errorf("the log has the verdicts %v", found)
	}
}

// TestCandidatesThatHangShareTheTime: Open refuses within 10 s, whatever their number, and a candidate that works is
// found behind one that hangs.
func TestCandidatesThatHangShareTheTime(t *testing.T) {
	t.Parallel()
	for n := range 16 {
		number, late := n/2, n%2 == 1 // late: not in their first run, which leaves less than the next one needs
		s := setScene(t)
		clock := time.Unix(1_800_000_000, 0)
		began, attacked := clock, 0
		s.hooks.Now = func() time.Time { return clock }
		s.hooks.Verify = func(ctx context.Context, ex executor.Executor, o *isolation.VerifyOptions) (isolation.Report, error) {
			if attacked++; ex == executor.Executor(s.fake) {
				if p := isolation.RunPatience(o); p < 2*time.Second {
					t.Errorf("%d hang: the one that works has %v for a run, and its payloads need two seconds", number, p)
				}
				return isolation.Believe(ctx, ex, o)
			}
			cost := isolation.Patience(o)
			if late {
				cost = isolation.RunPatience(o) + time.Second
			}
			clock = clock.Add(cost)
			return isolation.Report{}, fmt.Errorf("%w: on purpose", isolation.ErrHung)
		}
		working := s.config.Executors[0]
		s.config.Executors = nil
		for i := range number {
			hung := &fakeExecutor{caps: executor.AllCapabilities}
			s.config.Executors = append(s.config.Executors, isolation.Candidate{Name: fmt.Sprintf("hung%d", i), Executor: hung})
		}
		s.config.Executors = append(s.config.Executors, working)
		b, closeAll, err := s.tryOpen()
		if taken := b != nil; taken != (number == 0 || number == 1 && !late) {
			t.Errorf("%d hang, late %v: the one that works was taken: %v, %v", number, late, taken, err)
		}
		if took := clock.Sub(began); took > 10*time.Second || number > 0 && !late && attacked < 2 {
			t.Errorf("%d hang: %d were attacked, which took %v", number, attacked, took)
		}
		if b == nil && !errors.Is(err, isolation.ErrDenied) {
			t.Error(err)
		}
		for i := range number {
			if b == nil {
				contains(t, err, fmt.Sprintf("hung%d", i))
			}
		}
		closeAll()
	}
}
