// SPDX-License-Identifier: Apache-2.0

package executortest

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run at a time than there are processors, unless the caller has chosen a number: most of them
// wait for something most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen && flag.Set("test.parallel", "8") != nil {
		os.Exit(2)
	}
	os.Exit(m.Run())
}
