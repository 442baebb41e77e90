// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

// TestClaimFailingTestsAreRejected: results that are not what the judge knows.
func TestClaimFailingTestsAreRejected(t *testing.T) {
	t.Parallel()
	const begin = `{"Action":"start","Package":"p"}` + "\n" + `{"Action":"run","Package":"p","Test":"TestA"}` + "\n"
	for name, c := range map[string]struct {
		stdout string
		code   int
		want   isolation.Why
	}{
		"one fails": {begin + `{"Action":"fail","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p"}`, 1,
			isolation.WhyRejected},
		"one fails, exit 0": {begin + `{"Action":"fail","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"pass","Package":"p"}`, 0,
			isolation.WhyRejected},
		"empty":         {"", 0, isolation.WhyNoResult},
		"malformed":     {"{not json", 0, isolation.WhyNoResult},
		"upper case":    {begin + `{"Action":"PASS","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"PASS","Package":"p"}`, 0, 0},
		"field renamed": {`{"status":"failed","tests_failed":2}`, 0, 0},
		"no end":        {begin, 0, 0},
		"zero tests":    {`{"Action":"start","Package":"p"}` + "\n" + `{"Action":"pass","Package":"p"}`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.config.Judge = isolation.GoTest{MinTests: 1}
			s.config.Run.Args = []string{"go", "test", "-json", "./..."}
			passing := begin + `{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}` + "\n" + `{"Action":"pass","Package":"p","Elapsed":0}` + "\n"
			first := true
			s.fake.run = func(_ context.Context, spec executor.Spec) (*executor.Result, error) {
				text, code := c.stdout, c.code
				if first {
					text, code, first = passing, 0, false
				}
				r := ended(code)
				r.Stdout = executor.Output{Head: []byte(text), Total: int64(len(text))}
				_, err := spec.Stdout.Write([]byte(text))
				return r, err
			}
			b, _ := s.open()
			before := s.state()
			v, err := b.Try(context.Background(), s.good("1"))
			if err != nil || v.Accepted || before != s.state() {
				t.Fatalf("kept: %+v, %v", v, err)
			}
			if c.want != 0 && !v.Because(c.want) {
				t.Errorf("the reasons are %v, want %v", v.Reasons, c.want)
			}
			if !v.Because(isolation.WhyNoResult) && !v.Because(isolation.WhyRejected) {
				t.Errorf("the reasons are %v", v.Reasons)
			}
		})
	}
}

// TestClaimResultComesFromTheTests: a program that ends with 0 before a test has run.
func TestClaimResultComesFromTheTests(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	s.config.Judge = isolation.GoTest{MinTests: 1}
	s.config.Run.Args = []string{"go", "test", "-json", "./..."}
	n := 0
	s.fake.run = func(_ context.Context, spec executor.Spec) (*executor.Result, error) {
		text := ""
		if n++; n == 1 {
			text = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"pass","Package":"p","Elapsed":0}
`
		}
		r := ended(0)
		r.Stdout = executor.Output{Head: []byte(text), Total: int64(len(text))}
		_, err := spec.Stdout.Write([]byte(text))
		return r, err
	}
	b, _ := s.open()
	v, err := b.Try(context.Background(), s.good("1"))
	if err != nil || !v.Because(isolation.WhyNoResult) {
		t.Errorf("exit 0 without a report: %+v, %v", v, err)
	}
}

func TestClaimRegressionTriggersRollback(t *testing.T) {
	t.Parallel()
	for name, ruling := range map[string]judge{
		"error": func(context.Context, isolation.Evaluation) (isolation.Ruling, error) { return isolation.Keep, errAny },
		"panic": func(context.Context, isolation.Evaluation) (isolation.Ruling, error) { panic("no such metric") },
		"regression": func(context.Context, isolation.Evaluation) (isolation.Ruling, error) {
			return isolation.Reject, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.config.Judge = ruling
			b, _ := s.open()
			before := s.state()
			v, err := b.Try(context.Background(), s.good("1"))
			if err != nil || v.Accepted || !v.Because(isolation.WhyRestored) || before != s.state() {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}
