// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A trigger that fired holds over a milder model and a restart, until an operator clears it.
func TestLatchUntilCleared(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	l := openLog(t, dir, nil)
	mild := attended()
	mild.Generator = TrustedProvider
	if s, err := l.decide(decideInput{trust: mild, observed: seen}); err != nil || s.Required != TierGuarded {
		t.Fatalf("%+v, %v", s, err)
	}
	local := seen
	local.Generator = Local
	var deny *DenyError
	if _, err := l.decide(decideInput{trust: mild, observed: local}); !errors.As(err, &deny) || !errors.Is(err, ErrDenied) {
		t.Fatalf("a contradiction: %v", err)
	}
	if len(deny.Decision.Fired) != 2 || deny.Required != TierContainer || deny.Observed.Generator != Local {
		t.Errorf("%+v", deny)
	}
	firedAt := time.Now()
	closeLog(t, l)
	l = openLog(t, dir, nil)
	if _, err := l.decide(decideInput{trust: mild, observed: seen}); !errors.As(err, &deny) || deny.Required != TierContainer {
		t.Fatalf("forgotten: %v", err)
	}
	closeLog(t, l)

	good := func() *Clear {
		c := &Clear{Triggers: []Trigger{TriggerGeneration, TriggerContradiction}, Reason: reason, Approver: "A. Person",
			Created: firedAt, Expires: firedAt.Add(time.Hour), RunID: "run-7", origin: given}
		return loaded(c, &c.origin)
	}
	for what, spoil := range map[string]func(c *Clear){
		"made by the program": func(c *Clear) { c.origin = origin{} },
		"changed":             func(c *Clear) { c.Approver = "B. Person" },
		"before it fired":     func(c *Clear) { c.Created = firedAt.Add(-time.Minute) },
		"expired":             func(c *Clear) { c.Created = firedAt.Add(-time.Hour); c.Expires = firedAt },
		"from tomorrow":       func(c *Clear) { c.Created = firedAt.Add(time.Hour); c.Expires = firedAt.Add(2 * time.Hour) },
		"no trigger":          func(c *Clear) { c.Triggers = nil },
		"one that is not":     func(c *Clear) { c.Triggers = append(c.Triggers, TriggerSecrets) },
		"no reason":           func(c *Clear) { c.Reason = "" },
		"no approver":         func(c *Clear) { c.Approver = "" },
		"another run":         func(c *Clear) { c.RunID = "run-8" },
	} {
		c := good()
		spoil(c)
		if what != "changed" {
			loaded(c, &c.origin)
		}
		if err := ClearLatch(dir, "run-7", c); !errors.Is(err, ErrPermit) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := ClearLatch(dir, "run-7", nil); !errors.Is(err, ErrPermit) {
		t.Errorf("nil: %v", err)
	}
	if err := ClearLatch(dir, "run-8", good()); !errors.Is(err, ErrLog) {
		t.Errorf("a run that never was: %v", err)
	}
	if err := ClearLatch(dir, "run-7", good()); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, dir, nil)
	if s, err := l.decide(decideInput{trust: mild, observed: seen}); err != nil || s.Required != TierGuarded {
		t.Fatalf("after the clear: %+v, %v", s, err)
	}
	closeLog(t, l)
	// It served once: the same text does not clear what is not latched, nor what fires later.
	if err := ClearLatch(dir, "run-7", good()); !errors.Is(err, ErrPermit) {
		t.Errorf("a second time: %v", err)
	}
}

// One override for each run, recorded before it takes effect, also over a restart.
func TestOneOverride(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	var events bytes.Buffer
	l := openLog(t, dir, &LogOptions{Logger: slog.New(slog.NewTextHandler(&events, nil))})
	override := func(ticket string) *Override {
		o := goodOverride()
		o.Ticket = ticket
		o.Created, o.Expires = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
		o.origin.byRoot = true
		return loaded(o, &o.origin)
	}
	first := override("one")
	in := decideInput{trust: attended(), observed: seen, override: first, tree: "/srv/tree"}
	for range 3 { // unchanged: recorded once
		if s, err := l.decide(in); err != nil || s.Required != TierConfined || s.Override != digestOf(first) {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	if diff := cmp.Diff([]string{"observation", "override", "decision"}, kinds(t, dir)); diff != "" {
		t.Error(diff)
	}
	if text := events.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "byRoot=true") ||
		!strings.Contains(text, "A. Person") {
		t.Errorf("events:\n%s", text)
	}
	closeLog(t, l)
	l = openLog(t, dir, nil)
	in.override = override("two")
	if _, err := l.decide(in); !errors.Is(err, ErrPermit) || !errors.Is(err, ErrDenied) {
		t.Errorf("another one: %v", err)
	}
	in.override = first
	if s, err := l.decide(in); err != nil || s.Required != TierConfined {
		t.Errorf("the same one: %+v, %v", s, err)
	}
	in.override = nil
	if s, err := l.decide(in); err != nil || s.Required != TierContainer {
		t.Errorf("without it: %+v, %v", s, err)
	}
}

// panicking is a handler that fails.
type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool  { return true }
func (panicking) Handle(context.Context, slog.Record) error { panic("no disk") }
func (panicking) WithAttrs([]slog.Attr) slog.Handler        { return panicking{} }
func (panicking) WithGroup(string) slog.Handler             { return panicking{} }

// A log handler that panics changes nothing of what is recorded.
func TestLogHandlerPanics(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	l := openLog(t, dir, &LogOptions{Logger: slog.New(panicking{})})
	if s, err := l.decide(decideInput{trust: attended(), observed: seen}); err != nil || s.Required != TierContainer {
		t.Errorf("%+v, %v", s, err)
	}
	if diff := cmp.Diff([]string{"observation", "decision"}, kinds(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestApprovalIsRecorded(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	l := openLog(t, dir, nil)
	m := attended()
	m.Unattended = Yes
	a := &Approval{Approver: "A. Person", Reason: reason, ModelHash: m.Merge(seen).Hash(), Created: time.Now().Add(-time.Minute),
		Expires: time.Now().Add(time.Hour), RunID: "run-7", origin: given}
	loaded(a, &a.origin)
	in := decideInput{trust: m, observed: seen, approval: a}
	if s, err := l.decide(in); err != nil || s.Approval == "" || s.Required != TierContainer {
		t.Fatalf("%+v, %v", s, err)
	}
	if diff := cmp.Diff([]string{"observation", "approval", "decision"}, kinds(t, dir)); diff != "" {
		t.Error(diff)
	}
	closeLog(t, l)
	l = openLog(t, dir, nil)
	second := *a
	second.Reason += ", again"
	loaded(&second, &second.origin)
	in.approval = &second
	if _, err := l.decide(in); !errors.Is(err, ErrPermit) {
		t.Errorf("a second one for this model: %v", err)
	}
}

// TestClearInTheTree: the log knows the tree, and a variant could have written what lies in it.
func TestClearInTheTree(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	l := openLog(t, dir, nil)
	if _, err := l.decide(decideInput{trust: attended(), observed: seen, tree: filepath.Dir(given.path)}); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	c := &Clear{Triggers: []Trigger{TriggerGeneration}, Reason: reason, Approver: "A. Person",
		Created: time.Now(), Expires: time.Now().Add(time.Hour), RunID: "run-7", origin: given}
	err := ClearLatch(dir, "run-7", loaded(c, &c.origin))
	if !errors.Is(err, ErrPermit) || !strings.Contains(err.Error(), "inside the tree") {
		t.Errorf("%v", err)
	}
}
