// SPDX-License-Identifier: Apache-2.0

package allowlist_test

import (
	"fmt"
	"strings"

	"github.com/evoseal/containment/allowlist"
)

// A policy is read once; Explain then says what a generator may do, and why not.
func Example() {
	policy, err := allowlist.Load(strings.NewReader(`
version: 1
surface:
  - paths: [src/**]
    ops: [modify, create]
protect: [src/guard/**]
gate: []
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"src/score.go", "src/guard/list.go", "src/Makefile", "src/../go.mod", "README.md"} {
		d := policy.Explain(allowlist.Modify, path)
		fmt.Printf("%+q: allowed %v, code %q, rule %q\n", path, d.Allowed, d.Code, d.Rule.Source)
	}
	fmt.Println(policy.Explain(allowlist.Delete, "src/score.go"))
	// Output:
	// "src/score.go": allowed true, code "", rule "policy:4"
	// "src/guard/list.go": allowed false, code "protected", rule "policy:6"
	// "src/Makefile": allowed false, code "protected", rule "default:exec"
	// "src/../go.mod": allowed false, code "path_escapes", rule ""
	// "README.md": allowed false, code "outside_surface", rule ""
	// delete "src/score.go": op_not_allowed (rule "src/**", policy:4): allowed here: modify, create; use an operation that is allowed here, or another path
}
