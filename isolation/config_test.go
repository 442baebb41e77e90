// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
	"github.com/evoseal/containment/runaway"
)

// bites are one test for each field of Config, in which the field makes the difference.
var bites = map[string]func(t *testing.T, s *scene){
	"Trust": func(t *testing.T, s *scene) {
		s.fake.caps = isolation.TierConfined.Needs()
		s.config.Trust.Secrets = isolation.HighValue
		deniedFor(t, s, isolation.TierContainer)
	},
	"Sources": func(t *testing.T, s *scene) {
		s.fake.caps = isolation.TierConfined.Needs()
		s.config.Sources.EnvNames = []string{"AWS_SECRET_ACCESS_KEY"}
		deniedFor(t, s, isolation.TierContainer)
	},
	"Override": func(t *testing.T, s *scene) {
		s.fake.caps = isolation.TierConfined.Needs()
		s.config.Trust.Secrets = isolation.HighValue
		o := isolation.Override{Triggers: []isolation.Trigger{isolation.TriggerSecrets}, From: isolation.TierContainer,
			To: isolation.TierConfined, Reason: "the keys on this machine are those of a test", Approver: "a person",
			Ticket: "T-1", Created: time.Now().UTC(), Expires: time.Now().UTC().Add(time.Hour), RunID: "run"}
		s.config.Override = &o // made by the program itself
		deniedFor(t, s, isolation.TierContainer)
		s.config.Override = isolation.Signed(&o)
		if b, _ := s.open(); b.Status().Required != isolation.TierConfined {
			t.Errorf("%+v", b.Status().Required)
		}
	},
	"Approval": func(t *testing.T, s *scene) {
		s.config.Trust.Generator = isolation.Adversarial
		denied := deniedFor(t, s, isolation.TierContainer)
		if !denied.Decision.Approval || !errors.Is(denied, isolation.ErrPermit) {
			t.Fatalf("%v", denied)
		}
		s.config.Approval = isolation.Signed(&isolation.Approval{Approver: "a person", RunID: "run",
			Reason: "a test of what happens then", ModelHash: denied.Decision.ModelHash,
			Created: time.Now().UTC(), Expires: time.Now().UTC().Add(1500 * time.Millisecond)})
		b, _ := s.open()
		if v, err := b.Try(context.Background(), s.good("1")); err != nil || !v.Accepted {
			t.Fatalf("%+v, %v", v, err)
		}
		time.Sleep(1600 * time.Millisecond) // it expires
		v, err := b.Try(context.Background(), s.good("2"))
		if !errors.Is(err, isolation.ErrDenied) || v.Accepted || !v.Because(isolation.WhyDenied) {
			t.Errorf("after it expired: %+v, %v", v, err)
		}
	},
	"Governor": func(t *testing.T, s *scene) {
		s.limits = runaway.Limits{Iterations: 1}
		b, _ := s.open()
		v, err := b.Try(context.Background(), s.good("1"))
		if err != nil && !errors.Is(err, runaway.ErrStopped) || !v.Accepted {
			t.Fatalf("%+v, %v", v, err)
		}
		if v, err := b.Try(context.Background(), s.good("2")); !errors.Is(err, runaway.ErrStopped) || v.Accepted {
			t.Errorf("%+v, %v", v, err)
		}
	},
	"Tree": func(t *testing.T, s *scene) {
		b, _ := s.open()
		v, err := b.Try(context.Background(), isolation.Proposal{Edits: []allowlist.Edit{
			{Op: allowlist.Create, Path: "src/../../outside", Content: []byte("x")},
		}})
		if err != nil || !v.Because(isolation.WhyEditDenied) {
			t.Errorf("%+v, %v", v, err)
		}
	},
	"Edits": func(t *testing.T, s *scene) {
		s.config.Edits = must(allowlist.New(allowlist.Config{Gate: []string{}, Surface: []allowlist.SurfaceRule{
			{Paths: []string{"src/b.txt"}, Ops: []allowlist.Op{allowlist.Modify}}}}))
		b, _ := s.open()
		if v, err := b.Try(context.Background(), s.good("1")); err != nil || !v.Because(isolation.WhyEditDenied) {
			t.Errorf("%+v, %v", v, err)
		}
	},
	"Store": func(t *testing.T, s *scene) {
		b, _ := s.open()
		before := s.state()
		v, err := b.Try(context.Background(), s.bad("1"))
		if err != nil || !v.Because(isolation.WhyRestored) || s.state() != before {
			t.Errorf("%+v, %v", v, err)
		}
		if _, err := s.config.Store.Get(context.Background(), v.Checkpoint); err != nil {
			t.Error(err)
		}
	},
	"Executors": func(t *testing.T, s *scene) {
		first := &fakeExecutor{caps: isolation.TierGuarded.Needs()}
		s.config.MinTier = isolation.TierConfined
		s.config.Executors = append([]isolation.Candidate{{Name: "first", Executor: first}}, s.config.Executors...)
		b, _ := s.open()
		if v, err := b.Try(context.Background(), s.good("1")); err != nil || !v.Accepted || b.Status().Executor != "fake" {
			t.Errorf("%+v, %v", v, err)
		}
		if len(first.runs()) != 0 || len(s.fake.runs()) != 1 {
			t.Error("another executor ran")
		}
	},
	"Run": func(t *testing.T, s *scene) {
		s.config.Run.Args = []string{"one", "two"}
		s.config.Run.Env = map[string]string{"A": "1"}
		s.config.Run.ReadOnly, s.config.Run.Hidden = []string{"README"}, []string{"src/deep"}
		s.config.Run.Limits = executor.Limits{Memory: 1 << 20}
		s.config.Run.Require = executor.OwnKernel
		b, closeAll := s.open()
		s.config.Run.Args[0], s.config.Run.Env["A"] = "changed", "changed" // afterwards
		if v, err := b.Try(context.Background(), s.good("1")); err != nil || !v.Accepted {
			t.Fatalf("%+v, %v", v, err)
		}
		got := s.fake.runs()[0]
		if got.Args[0] != "one" || got.Env["A"] != "1" || got.Limits.Memory != 1<<20 || got.Hidden[0] != "src/deep" ||
			!got.Require.Has(executor.OwnKernel) || !got.Require.Has(isolation.TierGuarded.Needs()) {
			t.Errorf("it ran with %+v", got)
		}
		closeAll()
		s.fake.caps = isolation.TierContainer.Needs() // and nothing that Run asks for beyond it
		deniedFor(t, s, isolation.TierGuarded)
	},
	"Judge": func(t *testing.T, s *scene) {
		s.config.Judge = judge(func(context.Context, isolation.Evaluation) (isolation.Ruling, error) { return isolation.Reject, nil })
		b, _ := s.open()
		if v, err := b.Try(context.Background(), s.good("1")); err != nil || !v.Because(isolation.WhyRejected) {
			t.Errorf("%+v, %v", v, err)
		}
	},
	"MinTier": func(t *testing.T, s *scene) {
		s.fake.caps = isolation.TierContainer.Needs()
		s.config.MinTier = isolation.TierKernel
		deniedFor(t, s, isolation.TierKernel)
	},
	"StateDir": func(t *testing.T, s *scene) {
		s.config.StateDir = filepath.Join(s.home, "elsewhere")
		s.open()
		if _, err := isolation.VerifyLog(s.config.StateDir, "run"); err != nil {
			t.Error(err)
		}
	},
	"RunID": func(t *testing.T, s *scene) {
		s.config.RunID = "run"
		s.open()
		s.config.RunID = "another"
		if b, err := isolation.OpenWith(context.Background(), s.config, s.hooks); b != nil || !errors.Is(err, isolation.ErrConfig) {
			t.Errorf("%v, %v", b, err)
		}
	},
	"Logger": func(t *testing.T, s *scene) {
		var buf bytes.Buffer
		s.config.Logger = slog.New(slog.NewTextHandler(&buf, nil))
		b, _ := s.open()
		if v, err := b.Try(context.Background(), s.bad("1")); err != nil || v.Accepted {
			t.Fatalf("%+v, %v", v, err)
		}
		for _, text := range []string{"isolation: opened", "isolation: step", "run=run", "accepted=false", "rejected"} {
			if !bytes.Contains(buf.Bytes(), []byte(text)) {
				t.Errorf("the log does not say %q:\n%s", text, buf.String())
			}
		}
	},
}

func deniedFor(t *testing.T, s *scene, tier isolation.Tier) *isolation.DenyError {
	t.Helper()
	b, closeAll, err := s.tryOpen()
	if closeAll != nil {
		defer closeAll()
	}
	var denied *isolation.DenyError
	if b != nil || !errors.As(err, &denied) || denied.Required != tier {
		t.Fatalf("%v, %v", b, err)
	}
	return denied
}

func TestClaimSafetyFileDefinesTheGuardrails(t *testing.T) {
	t.Parallel()
	for field := range reflect.TypeFor[isolation.Config]().Fields() {
		test := bites[field.Name]
		if test == nil {
			t.Errorf("there is no test in which Config.%s makes a difference", field.Name)
			continue
		}
		t.Run(field.Name, func(t *testing.T) {
			t.Parallel()
			test(t, setScene(t))
		})
	}
	if _, err := allowlist.Load(bytes.NewReader([]byte("version: 1\nsurfaces: []\n"))); !errors.Is(err, allowlist.ErrConfig) {
		t.Errorf("an unknown key in a policy file: %v", err)
	}
}

// TestLatchOutlastsASession: a trigger that fired is not forgotten because the next model is milder.
func TestLatchOutlastsASession(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.config.Trust.Secrets = isolation.HighValue
	_, closeAll := s.open()
	closeAll()
	s.config.Trust.Secrets = isolation.NoSecrets
	s.fake.caps = isolation.TierConfined.Needs()
	denied := deniedFor(t, s, isolation.TierContainer)
	if len(denied.Decision.Fired) != 1 || !denied.Decision.Fired[0].Latched {
		t.Errorf("%+v", denied.Decision.Fired)
	}
}

// TestLoggerThatMisbehaves: a handler that panics does not end a step half-way.
func TestLoggerThatMisbehaves(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b := (*isolation.Boundary)(nil)
	s.config.Logger = slog.New(spiteful{armed: func() bool { return b != nil }})
	b, _ = s.open()
	before := s.state()
	v, err := b.Try(context.Background(), s.bad("1"))
	if err != nil || v.Accepted || before != s.state() {
		t.Errorf("%+v, %v", v, err)
	}
}

type spiteful struct{ armed func() bool }

func (s spiteful) Enabled(context.Context, slog.Level) bool { return true }

func (s spiteful) Handle(context.Context, slog.Record) error {
	if s.armed() {
		panic("no")
	}
	return nil
}

func (s spiteful) WithAttrs([]slog.Attr) slog.Handler { return s }

func (s spiteful) WithGroup(string) slog.Handler { return s }
