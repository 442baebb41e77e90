// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evoseal/containment/internal/journal"
)

// A counter that no restart resets: what is counted is in the file before it happens, and what was cut off counts as well.
func Example() {
	dir, err := os.MkdirTemp("", "journal-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cfg := journal.Config{Dir: filepath.Join(dir, "state"), Name: "run-7", Kind: "counter", ID: "run-7"}

	for range 3 { // three lives of a process
		j, err := journal.Open(cfg)
		if errors.Is(err, journal.ErrNotExist) {
			j, err = journal.Create(cfg, []byte(`{"limit":20}`))
		}
		if err != nil {
			fmt.Println(err) // whatever else it is, nothing is allowed
			return
		}
		count := 0
		for rec, err := range j.Records() {
			if err != nil {
				fmt.Println(err)
				return
			}
			if count++; rec.Cut > 0 {
				fmt.Println("one of unknown kind was cut off")
			}
		}
		fmt.Println(count)
		if _, err := j.Append([]byte(`{"begin":true}`), true); err != nil {
			fmt.Println(err)
			return
		}
		if err := j.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 0
	// 1
	// 2
}
