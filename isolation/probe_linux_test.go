// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/executortest"
)

// Each capability has attacks of its own that decide, their names exist, and nothing is chosen that was not promised.
func TestChoose(t *testing.T) {
	t.Parallel()
	for one := range executor.AllCapabilities.All() {
		cases, err := choose(one, false)
		if err != nil {
			t.Fatal(err)
		}
		var about []string
		for i, c := range cases {
			switch {
			case i < len(contract):
				if c.Name != contract[i] || c.Needs != 0 {
					t.Errorf("%v: case %d is %s", one, i, c.Name)
				}
			case c.Needs != one:
				t.Errorf("%v: %s attacks %v", one, c.Name, c.Needs)
			default:
				about = append(about, c.Name)
			}
		}
		if len(about) == 0 {
			t.Errorf("nothing attacks %v", one)
		}
	}
	quick, err := choose(executor.AllCapabilities, false)
	full, fullErr := choose(executor.AllCapabilities, true)
	if err != nil || fullErr != nil || len(full) != len(executortest.Cases()) {
		t.Fatalf("%d of %d cases: %v %v", len(full), len(executortest.Cases()), err, fullErr)
	}
	for _, q := range quick {
		if !slices.ContainsFunc(full, func(c executortest.Case) bool { return c.Name == q.Name }) {
			t.Errorf("%s is no case of the full set", q.Name)
		}
	}
	if _, err := choose(executor.AllCapabilities+1, true); err == nil {
		t.Error("nothing attacks a capability that nobody has defined")
	}
}

func TestProven(t *testing.T) {
	t.Parallel()
	const a, b = executor.NetworkOff, executor.HostFilesHidden
	probe := func(c executor.Capability, control, result ProbeResult) Probe {
		return Probe{Capability: c, Control: control, Result: result}
	}
	ok := probe(0, Evident, Held)
	for name, tc := range map[string]struct {
		probes []Probe
		want   executor.Capability
	}{
		"nothing":               {nil, 0},
		"no attack":             {[]Probe{ok}, 0},
		"held":                  {[]Probe{ok, probe(a, Broken, Held)}, a},
		"evident":               {[]Probe{ok, probe(a, Evident, Held)}, a},
		"broken":                {[]Probe{ok, probe(a, Broken, Broken)}, 0},
		"one of two broken":     {[]Probe{ok, probe(a, Broken, Held), probe(a, Broken, Broken)}, 0},
		"one of two unknown":    {[]Probe{ok, probe(a, Broken, Held), probe(a, Broken, Inconclusive)}, 0},
		"without control":       {[]Probe{ok, probe(a, Inconclusive, Held)}, 0},
		"control held":          {[]Probe{ok, probe(a, Held, Held)}, 0},
		"forged":                {[]Probe{ok, probe(a, 77, 78)}, 0},
		"both":                  {[]Probe{ok, probe(a|b, Broken, Held)}, a | b},
		"both, and one refuted": {[]Probe{ok, probe(a|b, Broken, Held), probe(b, Broken, Broken)}, a},
		"the contract broken":   {[]Probe{probe(a, Broken, Held), probe(0, Broken, Broken)}, 0},
		"the contract unknown":  {[]Probe{{}, probe(a, Broken, Held)}, 0},
		"more than was needed":  {[]Probe{ok, probe(a|executor.OwnKernel, Broken, Held)}, a},
	} {
		if got := proven(tc.probes, a|b); got != tc.want {
			t.Errorf("%s: %v, not %v", name, got, tc.want)
		}
	}
}

// told is an executor that says what it is told to say.
type told struct {
	claims      executor.Capability
	fingerprint string
}

func (x *told) Capabilities() executor.Capability { return x.claims }
func (x *told) Fingerprint() string               { return x.fingerprint }
func (*told) Run(context.Context, executor.Spec) (*executor.Result, error) {
	return nil, errors.New("it only talks")
}

// silent is one that has no fingerprint.
type silent struct{ executor.Executor }

// held returns a report as a verification of the executor would leave it.
func held(t *testing.T, x *told, at time.Time) Report {
	t.Helper()
	host, err := hostFacts()
	if err != nil {
		t.Fatal(err)
	}
	return Report{
		Executor: typeName(x), Fingerprint: x.fingerprint, Claimed: x.claims, Needs: x.claims, Proven: x.claims, Host: host,
		Started: moment(at), Finished: moment(at), Expires: moment(at).Add(ReportTTL),
	}
}

// Before each run is asked whether the report still holds; whatever it rests on may have changed.
func TestCurrent(t *testing.T) {
	t.Parallel()
	at := time.Now()
	for name, tc := range map[string]struct {
		change func(*told, *Report)
		after  time.Duration
		holds  bool
	}{
		"as it was":         {func(*told, *Report) {}, time.Hour, true},
		"at the last":       {func(*told, *Report) {}, ReportTTL - time.Second, true},
		"a day later":       {func(*told, *Report) {}, ReportTTL, false},
		"the clock":         {func(*told, *Report) {}, -time.Minute, false},
		"the fingerprint":   {func(x *told, _ *Report) { x.fingerprint = "two" }, 0, false},
		"no fingerprint":    {func(x *told, _ *Report) { x.fingerprint = "" }, 0, false},
		"fewer claims":      {func(x *told, _ *Report) { x.claims = executor.CleanEnv }, 0, false},
		"more claims":       {func(x *told, _ *Report) { x.claims |= executor.OwnKernel }, 0, false},
		"another boot":      {func(_ *told, r *Report) { r.Host.BootID = "earlier" }, 0, false},
		"another kernel":    {func(_ *told, r *Report) { r.Host.Kernel = "2.6" }, 0, false},
		"another uid":       {func(_ *told, r *Report) { r.Host.UID++ }, 0, false},
		"another type":      {func(_ *told, r *Report) { r.Executor = "*other.Executor" }, 0, false},
		"not proven":        {func(_ *told, r *Report) { r.Proven = executor.CleanEnv }, 0, false},
		"the zero report":   {func(_ *told, r *Report) { *r = Report{} }, 0, false},
		"nothing was asked": {func(_ *told, r *Report) { r.Needs = 0 }, 0, false},
	} {
		x := &told{executor.CleanEnv | executor.NetworkOff, "one"}
		r := held(t, x, at)
		tc.change(x, &r)
		err := r.Current(t.Context(), x, at.Add(tc.after))
		if tc.holds != (err == nil) || err != nil && !errors.Is(err, ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := held(t, &told{executor.CleanEnv, ""}, at).Current(t.Context(), nil, at); !errors.Is(err, ErrStale) {
		t.Errorf("no executor: %v", err)
	}
}

// What is remembered is forgotten in time, and only what holds for this very executor is remembered.
func TestRecall(t *testing.T) {
	x := &told{executor.CleanEnv | executor.NetworkOff, t.Name()}
	ask := func(ex executor.Executor, o VerifyOptions) bool {
		v := &verification{options: o.withDefaults()}
		if err := v.identify(t.Context(), ex); err != nil {
			t.Fatal(err)
		}
		_, ok := v.recall()
		return ok
	}
	keep := func(at time.Time, full bool) {
		v := &verification{}
		if err := v.identify(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		v.report = held(t, x, at)
		v.report.Full = full
		v.remember()
	}
	keep(time.Now(), false)
	other, mute := *x, told{x.claims, ""}
	for name, tc := range map[string]struct {
		ex   executor.Executor
		o    VerifyOptions
		want bool
	}{
		"the same":          {x, VerifyOptions{}, true},
		"less":              {x, VerifyOptions{Needs: executor.CleanEnv}, true},
		"asked anew":        {x, VerifyOptions{Fresh: true}, false},
		"more attacks":      {x, VerifyOptions{Full: true}, false},
		"an equal executor": {&other, VerifyOptions{}, false},
		"no fingerprint":    {&mute, VerifyOptions{}, false},
	} {
		if got := ask(tc.ex, tc.o); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	keep(time.Now(), true)
	if !ask(x, VerifyOptions{Full: true}) || !ask(x, VerifyOptions{}) {
		t.Error("the full verification is not known")
	}
	for _, at := range []time.Time{time.Now().Add(-ReportTTL), time.Now().Add(time.Hour)} {
		keep(at, true)
		if ask(x, VerifyOptions{}) {
			t.Errorf("a verification of %v still holds", at)
		}
	}
	x.fingerprint += "changed"
	if ask(x, VerifyOptions{}) {
		t.Error("the fingerprint has changed, and nobody noticed")
	}
}

// A fingerprint that cannot stand in a record is told by its digest.
func TestFingerprintOf(t *testing.T) {
	t.Parallel()
	long, odd := make([]byte, maxFingerprint+1), "\xff"
	for i := range long {
		long[i] = 'x'
	}
	a, b := fingerprintOf(&told{0, string(long)}), fingerprintOf(&told{0, string(long) + "y"})
	if a == b || len(a) != len("sha256:")+64 {
		t.Errorf("%q, %q", a, b)
	}
	if fingerprintOf(&told{0, odd}) == odd || fingerprintOf(&told{0, "x"}) != "x" || fingerprintOf(silent{}) != "" {
		t.Error("a fingerprint is not told as it must be")
	}
}
