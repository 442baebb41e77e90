// SPDX-License-Identifier: Apache-2.0

package runaway_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/evoseal/containment/runaway"
)

func TestMicro(t *testing.T) {
	t.Parallel()
	for m, want := range map[runaway.Micro]string{
		0: "0.000000", 1_250_000: "1.250000", -1: "-0.000001", math.MaxInt64: "9223372036854.775807",
		math.MinInt64: "-9223372036854.775808",
	} {
		if got := m.String(); got != want {
			t.Errorf("%d: %s, want %s", int64(m), got, want)
		}
	}
}

func TestReasonsAndKindsAsText(t *testing.T) {
	t.Parallel()
	for r := runaway.ReasonKillFile; r <= runaway.ReasonCompleted; r++ {
		text, err := json.Marshal(r)
		var back runaway.Reason
		if err != nil || json.Unmarshal(text, &back) != nil || back != r || strings.Contains(r.String(), "(") {
			t.Errorf("%v: %s, %v, %v", r, text, back, err)
		}
	}
	for k := runaway.Unknown; k <= runaway.Neutral; k++ {
		text, err := json.Marshal(k)
		var back runaway.Kind
		if err != nil || json.Unmarshal(text, &back) != nil || back != k || strings.Contains(k.String(), "(") {
			t.Errorf("%v: %s, %v, %v", k, text, back, err)
		}
	}
	var r runaway.Reason
	var k runaway.Kind
	var op runaway.Op
	for _, err := range []error{
		json.Unmarshal([]byte(`"odd"`), &r), json.Unmarshal([]byte(`""`), &r), json.Unmarshal([]byte(`"odd"`), &k),
		json.Unmarshal([]byte(`"odd"`), &op), json.Unmarshal([]byte(`""`), &op),
	} {
		if err == nil {
			t.Error("an unknown text was taken")
		}
	}
	if _, err := json.Marshal(runaway.Reason(99)); err == nil {
		t.Error("an undefined reason was written")
	}
	if runaway.Kind(99).String() != "kind(99)" || runaway.Reason(99).String() != "reason(99)" ||
		runaway.Op(99).String() != "op(99)" {
		t.Error("undefined values have no text")
	}
	if !runaway.Kind(99).Failure() {
		t.Error("an undefined kind is no failure")
	}
}

// TestZeroValues: nothing is admitted, nothing panics.
func TestZeroValues(t *testing.T) {
	t.Parallel()
	for _, g := range []*runaway.Governor{nil, {}} {
		_, beginErr := g.Begin(t.Context(), runaway.Estimate{})
		for _, err := range []error{
			beginErr, g.Stop(runaway.ReasonOperator, ""), g.Pause(""), g.Resume(runaway.Approval{By: "a",
				Reason: "b"}), g.Close(t.Context()),
		} {
			if !errors.Is(err, runaway.ErrClosed) {
				t.Errorf("governor: %v", err)
			}
		}
		for it, err := range g.Iterations(t.Context(), runaway.Estimate{}) {
			if it != nil || !errors.Is(err, runaway.ErrClosed) {
				t.Errorf("iterations: %v, %v", it, err)
			}
		}
	}
	for _, it := range []*runaway.Iteration{nil, {}} {
		seen, seenErr := it.Seen(print(1))
		_, childErr := it.Child(t.Context(), "c", runaway.Limits{})
		ctx, cancel := it.Bind(t.Context())
		cancel()
		for _, err := range []error{
			seenErr, childErr, it.Spend(runaway.Usage{}), it.Check(t.Context()), it.End(accepted), context.Cause(ctx),
		} {
			if !errors.Is(err, runaway.ErrLost) {
				t.Errorf("iteration: %v", err)
			}
		}
		if !seen || it.Number() != 0 {
			t.Errorf("%v, %d", seen, it.Number())
		}
	}
}

func TestEndTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := open(t, runaway.UnsafeMemStore(), runaway.Limits{}, nil)
		it := begin(t, g)
		if err := it.End(rejected); err != nil {
			t.Fatal(err)
		}
		next := begin(t, g) // an iteration that has ended must not reach another one
		if err := it.End(accepted); !errors.Is(err, runaway.ErrLost) {
			t.Errorf("end: %v", err)
		}
		if err := it.Check(t.Context()); !errors.Is(err, runaway.ErrLost) {
			t.Errorf("check: %v", err)
		}
		if seen, err := it.Seen(print(1)); !errors.Is(err, runaway.ErrLost) || !seen {
			t.Errorf("seen: %v, %v", seen, err)
		}
		if st := g.Status(); st.Streak != 1 || st.Completed != 1 || len(st.Open) != 1 {
			t.Errorf("%+v", st)
		}
		_ = next.End(accepted)
	})
}

func TestMeterNames(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]runaway.Meter{
		"none": 0, "tokens": runaway.MeterTokens, "cost|calls": runaway.MeterCost | runaway.MeterCalls,
		"cost|tokens|calls|cpu": runaway.MeterAll, "cpu|meter(128)": runaway.MeterCPU | 128,
	} {
		if got := m.String(); got != want {
			t.Errorf("%d is %q, want %q", m, got, want)
		}
	}
}
