// SPDX-License-Identifier: Apache-2.0

package rollbacktest_test

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/rollback/rollbacktest"
)

// open gives the suite our own store.
func open(store string, o *rollback.Options) (rollbacktest.Subject, error) {
	return rollback.Open(store, o)
}

// TestStore is in memory where that is possible: what a case is about is rarely the file system, and ext4 takes long for
// trees that are made and removed all the time. TestStoreOnDisk takes the others.
func TestStore(t *testing.T) {
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err == nil && st.Type == unix.TMPFS_MAGIC {
		t.Setenv("TMPDIR", "/dev/shm")
	}
	rollbacktest.Run(t, open)
}

// TestStoreOnDisk takes the cases whose outcome depends on how a file system keeps times, names, holes, links and
// attributes, on whatever the temporary directory is on.
func TestStoreOnDisk(t *testing.T) {
	ids := []string{"C1", "C3", "C4", "C5", "C6", "C6b", "C7", "C8b", "C12", "C13", "H1", "H2", "H3", "H4", "R1", "R2", "R4",
		"R4b", "R5", "R9", "R11", "T2"}
	for _, c := range rollbacktest.Cases() {
		i := slices.Index(ids, c.ID)
		if i < 0 {
			continue
		}
		ids = slices.Delete(ids, i, i+1)
		t.Run(c.ID+"-"+c.Name, func(t *testing.T) {
			if err := c.Check(t.Context(), open, t.TempDir()); err != nil {
				t.Fatalf("%v\nwhy: %s", err, c.Why)
			}
		})
	}
	if len(ids) > 0 {
		t.Errorf("no case has the IDs %v", ids)
	}
}

func TestStoreAsRoot(t *testing.T) {
	testenv.Need(t, "root")
	rollbacktest.RunAsRoot(t, open)
}

// TestStoreOffersAll: a store that offers nothing passes the cases that ask for it.
func TestStoreOffersAll(t *testing.T) {
	if got := rollbacktest.Offers((*rollback.Store)(nil)); got != rollbacktest.AllFeatures {
		t.Errorf("the store offers %v, want %v", got, rollbacktest.AllFeatures)
	}
}
