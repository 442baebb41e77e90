// SPDX-License-Identifier: Apache-2.0

package rollbacktest

import (
	"io"
	"testing"
)

// Run runs every case as a subtest, one after the other, each with a store of its own, and then the cases that need a
// second process: for these it starts the calling test once more. So nothing before Run in that test may take long, and
// open must do the same in both processes.
func Run(t *testing.T, open Open) {
	t.Helper()
	if working(t, open) {
		return
	}
	all := Cases()
	if len(all) == 0 {
		t.Fatal("rollbacktest: there are no cases for this system, so nothing was proven")
	}
	offered := offers(t, open)
	for _, c := range all {
		t.Run(c.ID+"-"+c.Name, func(t *testing.T) { judge(t, c, open, offered) })
	}
	for _, c := range processCases(t) {
		t.Run(c.ID+"-"+c.Name, func(t *testing.T) { judge(t, c, open, offered) })
	}
}

// RunAsRoot runs the cases that need CAP_SYS_ADMIN: mounts below the tree, devices, a full file system. They take place
// in a mount namespace of a child. For any other caller they are inconclusive, so they fail.
func RunAsRoot(t *testing.T, open Open) {
	t.Helper()
	if working(t, open) {
		return
	}
	all := rootCases(t)
	if len(all) == 0 {
		t.Fatal("rollbacktest: there are no cases for this system, so nothing was proven")
	}
	offered := offers(t, open)
	for _, c := range all {
		t.Run(c.ID+"-"+c.Name, func(t *testing.T) { judge(t, c, open, offered) })
	}
}

func offers(t *testing.T, open Open) Feature {
	t.Helper()
	s, err := open(t.TempDir()+"/store", nil)
	if err != nil {
		t.Fatalf("rollbacktest: the store does not even open: %v", err)
	}
	if c, ok := s.(io.Closer); ok {
		if err := c.Close(); err != nil {
			t.Fatalf("rollbacktest: close: %v", err)
		}
	}
	return Offers(s)
}

// judge fails the subtest unless the store holds the case, and records how it does.
func judge(t *testing.T, c Case, open Open, offered Feature) {
	t.Helper()
	if missing := c.Need &^ offered; missing != 0 {
		t.Attr("outcome", "not offered")
		t.Logf("the store does not offer %v", missing)
		return
	}
	if err := c.Check(t.Context(), open, t.TempDir()); err != nil {
		t.Fatalf("%v\nwhy: %s", err, c.Why)
	}
	t.Attr("outcome", "held")
}
