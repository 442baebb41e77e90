// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

// The variant leaves before its tests, with exit status 0. That is no pass.
func ExampleGoTest() {
	e := isolation.Evaluation{
		Result:         &executor.Result{Cause: executor.CauseExited, ExitCode: 0},
		Stdout:         []byte(`{"Action":"start","Package":"example.net/p"}` + "\n" + `{"Action":"pass","Package":"example.net/p"}`),
		StdoutComplete: true,
		Baseline:       &isolation.Baseline{Passed: []string{"example.net/p TestAdd"}},
	}
	ruling, err := isolation.GoTest{}.Judge(context.Background(), e)
	fmt.Println(ruling, errors.Is(err, isolation.ErrNoResult))
	fmt.Println(err)
	// Output:
	// reject true
	// isolation: variant rejected: 3 finding(s)
	//   no-report: there is no test in the report
	//   vanished: "example.net/p TestAdd": it passed before and is not in the report
	//   too-few: 0 test(s) passed; at least 1 must
}
