// SPDX-License-Identifier: Apache-2.0

package rollbacktest_test

import (
	"testing"

	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/rollback/rollbacktest"
)

// open gives the suite our own store.
func open(store string, o *rollback.Options) (rollbacktest.Subject, error) {
	return rollback.Open(store, o)
}

func TestStore(t *testing.T) { rollbacktest.Run(t, open) }

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
