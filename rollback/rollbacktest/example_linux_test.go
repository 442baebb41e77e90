// SPDX-License-Identifier: Apache-2.0

package rollbacktest_test

import (
	"context"
	"fmt"
	"os"

	"github.com/evoseal/containment/rollback"
	"github.com/evoseal/containment/rollback/rollbacktest"
)

// A test of a store is one line: rollbacktest.Run(t, open). Outside of a test each case can be asked by itself.
func Example() {
	open := func(store string, o *rollback.Options) (rollbacktest.Subject, error) { return rollback.Open(store, o) }
	for _, c := range rollbacktest.Cases()[:2] {
		dir, err := os.MkdirTemp("", "example-")
		if err != nil {
			fmt.Println(err)
			return
		}
		err = c.Check(context.Background(), open, dir)
		fmt.Println(c.ID, c.Name, err, os.RemoveAll(dir))
	}
	// Output:
	// C1 empty <nil> <nil>
	// C2 everything <nil> <nil>
}
