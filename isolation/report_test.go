// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

func sampleReport() isolation.Report {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC)
	return isolation.Report{
		Executor: "*some.Executor", Fingerprint: "some 1.2 <sha256:ab>",
		Needs: executor.CleanEnv, Claimed: executor.CleanEnv | executor.NetworkOff, Proven: executor.CleanEnv,
		Host:    isolation.HostFacts{System: "linux/amd64", Kernel: "6.1", BootID: "b", NameHash: "n", UID: 1000, GID: 1000},
		Library: "v0.1.0", Suite: isolation.SuiteVersion, Nonce: "N",
		Enforced: []executor.Enforcement{{Limit: "Memory", By: executor.ByCgroupV2, Scope: executor.PerRun, Value: 1}},
		Probes: []isolation.Probe{{
			Name: "fds", Capability: executor.CleanEnv, Control: isolation.Broken, Result: isolation.Held, MS: 1.25,
		}},
		Started: at, Finished: at.Add(time.Second), Expires: at.Add(time.Hour),
	}
}

// The record is an in-toto Statement, reads back as it was, and keeps its hash.
func TestReportJSON(t *testing.T) {
	t.Parallel()
	r := sampleReport()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var generic map[string]any
	if err := json.Unmarshal(data, &generic); err != nil {
		t.Fatal(err)
	}
	subject := []any{map[string]any{"name": r.Executor, "digest": map[string]any{"sha256": r.SubjectDigest()}}}
	if generic["_type"] != "https://in-toto.io/Statement/v1" || generic["predicateType"] != isolation.ReportType ||
		!cmp.Equal(generic["subject"], subject) {
		t.Errorf("%s", data)
	}
	var back isolation.Report
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" || back.Hash() != r.Hash() || len(r.Hash()) != 64 {
		t.Errorf("%s", diff)
	}
	r.Cached = true
	if r.Hash() != back.Hash() {
		t.Error("how a report was come by is no part of the record")
	}
	if zero, err := json.Marshal(isolation.Report{}); err != nil || !strings.Contains(string(zero), `"probes":[]`) {
		t.Errorf("%s %v", zero, err)
	}
}

// Every part of the record is in its hash.
func TestReportHash(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, change := range map[string]func(*isolation.Report){
		"nothing":     func(*isolation.Report) {},
		"executor":    func(r *isolation.Report) { r.Executor += "x" },
		"fingerprint": func(r *isolation.Report) { r.Fingerprint += "x" },
		"needs":       func(r *isolation.Report) { r.Needs |= executor.OwnKernel },
		"claimed":     func(r *isolation.Report) { r.Claimed |= executor.OwnKernel },
		"proven":      func(r *isolation.Report) { r.Proven = 0 },
		"full":        func(r *isolation.Report) { r.Full = true },
		"host":        func(r *isolation.Report) { r.Host.BootID += "x" },
		"nonce":       func(r *isolation.Report) { r.Nonce += "x" },
		"enforced":    func(r *isolation.Report) { r.Enforced[0].By = executor.ByNone },
		"result":      func(r *isolation.Report) { r.Probes[0].Result = isolation.Broken },
		"control":     func(r *isolation.Report) { r.Probes[0].Control = isolation.Evident },
		"time":        func(r *isolation.Report) { r.Expires = r.Expires.Add(time.Millisecond) },
	} {
		r := sampleReport()
		change(&r)
		if other, taken := seen[r.Hash()]; taken {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[r.Hash()] = name
	}
}

// A record of something else, or about something else, is none.
func TestReportForged(t *testing.T) {
	t.Parallel()
	good, err := json.Marshal(sampleReport())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"type":      {"in-toto.io/Statement/v1", "in-toto.io/Statement/v0.1"},
		"predicate": {"verification/v1", "verification/v9"},
		"subject":   {`"subject":[{"name":"*some.Executor"`, `"subject":[{"name":"*other.Executor"`},
		"executor":  {`"executor":"*some.Executor"`, `"executor":"*other.Executor"`},
		"claims":    {`"claimed":["CleanEnv","NetworkOff"]`, `"claimed":["CleanEnv"]`},
		"result":    {`"result":"held"`, `"result":"splendid"`},
		"name":      {`"proven":["CleanEnv"]`, `"proven":["Everything"]`},
		"no JSON":   {`{"_type"`, `{`},
	} {
		bad := strings.Replace(string(good), change[0], change[1], 1)
		if bad == string(good) {
			t.Fatalf("%s: nothing was changed", name)
		}
		var r isolation.Report
		if err := r.UnmarshalJSON([]byte(bad)); !errors.Is(err, isolation.ErrRecord) || r.Executor != "" {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
}

// The zero value of a result, and every value that nobody defined, is no proof.
func TestProbeResult(t *testing.T) {
	t.Parallel()
	for control := range isolation.ProbeResult(6) {
		for result := range isolation.ProbeResult(6) {
			p := isolation.Probe{Control: control, Result: result}
			want := result == isolation.Held && (control == isolation.Broken || control == isolation.Evident)
			if p.Proves() != want {
				t.Errorf("%v under a control that is %v: %v", result, control, p.Proves())
			}
		}
	}
	if text, err := isolation.ProbeResult(9).MarshalText(); err != nil || string(text) != "inconclusive" {
		t.Errorf("%s %v", text, err)
	}
}

// The message names what is missing, what was seen, the cause and the way out.
func TestVerifyErrorText(t *testing.T) {
	t.Parallel()
	why := errors.New("for some reason")
	e := &isolation.VerifyError{
		Executor: "*some.Executor", Unclaimed: executor.NetworkOff, Unproven: executor.CleanEnv, Fix: "do this", Err: why,
	}
	for range 7 {
		e.Failed = append(e.Failed, isolation.Probe{Name: "fds", Result: isolation.Broken, Detail: "descriptor 7"})
	}
	for _, part := range []string{"*some.Executor", "NetworkOff", "CleanEnv", "fds", "broken", "descriptor 7", "2 more",
		"for some", "do this"} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q is missing in %s", part, e)
		}
	}
	if !errors.Is(e, isolation.ErrUnproven) || !errors.Is(e, why) {
		t.Error("it matches neither its sentinel nor its cause")
	}
	if bare := (&isolation.VerifyError{}); !errors.Is(bare, isolation.ErrUnproven) || bare.Error() == "" {
		t.Error("the zero value is no error")
	}
}
