// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/isolation"
)

func TestTryKeepsWhatPasses(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	before := b.Status().Checkpoint
	v, err := b.Try(context.Background(), s.good("1"))
	if err != nil {
		t.Fatal(err)
	}
	if !v.Accepted || v.Stage != isolation.StageSettle || v.Iteration != 1 {
		t.Errorf("the verdict is %+v", v)
	}
	if diff := cmp.Diff([]isolation.Why{isolation.WhyKept}, whys(v)); diff != "" {
		t.Error(diff)
	}
	if got, _ := os.ReadFile(filepath.Join(s.dir, "src/a.txt")); string(got) != "alpha 1\n" {
		t.Errorf("the file holds %q", got)
	}
	if v.Checkpoint == before || v.Checkpoint != b.Status().Checkpoint || v.Tree == "" || v.Evidence == "" || v.Plan == "" {
		t.Errorf("the verdict is %+v", v)
	}
	if st := b.Status(); st.Governor.Accepted != 1 || st.Governor.Attempts != 1 {
		t.Errorf("the governor counts %+v", st.Governor)
	}
	if n := len(s.fake.runs()); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

func TestTryRestoresWhatFails(t *testing.T) {
	t.Parallel()
	s := setScene(t)
	b, _ := s.open()
	before := s.state()
	v, err := b.Try(context.Background(), s.bad("1"))
	if err != nil {
		t.Fatal(err)
	}
	if v.Accepted || v.Stage != isolation.StageJudge || v.Checkpoint != b.Status().Checkpoint {
		t.Errorf("the verdict is %+v", v)
	}
	if v.Reasons[len(v.Reasons)-1].Why != isolation.WhyRestored {
		t.Errorf("the reasons are %v", v.Reasons)
	}
	if diff := cmp.Diff(before, s.state()); diff != "" {
		t.Errorf("the tree is another one:\n%s", diff)
	}
}
