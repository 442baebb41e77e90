// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

// TestFlakyAcceptedTree: a test that fails now and then does not end a run at its next Open, and nothing less than all
// that passed before is taken for a pass.
func TestFlakyAcceptedTree(t *testing.T) {
	t.Parallel()
	all, fewer := []string{"A", "B"}, []string{"A"}
	for name, c := range map[string]struct {
		runs [][]string // what the runs at the second Open report; nil: the executor fails
		want error
		made int // runs at the second Open
	}{
		"steady":            {[][]string{all}, nil, 1},
		"passes at last":    {[][]string{fewer, all}, nil, 2},
		"passes very late":  {[][]string{fewer, fewer, all}, nil, 3},
		"passes too late":   {[][]string{fewer, fewer, fewer, all}, isolation.ErrRejected, 3},
		"reports nothing":   {[][]string{{}, {}, {}}, isolation.ErrRejected, 3},
		"cannot be run":     {[][]string{nil, all}, errAny, 1},
		"fails differently": {[][]string{fewer, nil, all}, errAny, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setScene(t)
			s.reporting(all...)
			_, closeAll := s.open()
			closeAll()
			made := 0
			s.fake.run = func(ctx context.Context, spec executor.Spec) (*executor.Result, error) {
				report := c.runs[made]
				if made++; report == nil {
					return nil, errAny
				}
				return reported(ctx, spec, report...)
			}
			b, closeAll, err := s.tryOpen()
			if (b == nil) != (c.want != nil) || !errors.Is(err, c.want) || made != c.made {
				t.Fatalf("%d runs: %v, %v", made, b, err)
			}
			if rejected := errors.Is(err, isolation.ErrRejected); rejected != (c.want == isolation.ErrRejected) {
				t.Errorf("rejected: %v, though what ended it is %v: %v", rejected, c.want, err)
			}
			if noted := s.notes("flaky"); (noted == 1) != (c.want == nil && c.made > 1) {
				t.Errorf("the log says %d times that the tree is flaky", noted)
			}
			if b == nil {
				return
			}
			// What variants are judged by is all of it, and they run once.
			s.reporting(fewer...)
			before := len(s.fake.runs())
			v, err := b.Try(t.Context(), s.good("1"))
			if err != nil || v.Accepted || !v.Because(isolation.WhyRejected) || len(s.fake.runs()) != before+1 {
				t.Errorf("%+v, %v", v, err)
			}
			closeAll()
		})
	}
}

// notes counts the notes of the log that have a text in them.
func (s *scene) notes(text string) (n int) {
	for rec, err := range isolation.ReadLog(s.config.StateDir, "run") {
		if err != nil {
			s.t.Fatal(err)
		}
		if rec.Kind == isolation.RecordNote && strings.Contains(string(rec.Body), text) {
			n++
		}
	}
	return n
}
