// SPDX-License-Identifier: Apache-2.0

package toolchain_test

import (
	"errors"
	"fmt"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/toolchain"
)

// A toolchain for another language is written down by hand.
func ExampleToolchain_Apply() {
	lua := toolchain.Toolchain{
		Name:   "lua",
		Mounts: []executor.Mount{{Source: "/opt/lua"}},
		Env:    map[string]string{"LUA_INIT": ""},
		Path:   []string{"/opt/lua/bin"},
	}
	spec := executor.Spec{Args: []string{"lua", "test.lua"}, Workspace: "."}
	if err := lua.Apply(&spec); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(spec.Mounts[0].Source, spec.Env["PATH"])

	spec.Env["LUA_INIT"] = "@/tmp/evil.lua"
	err := lua.Apply(&spec)
	if e, ok := errors.AsType[*toolchain.ConflictError](err); ok {
		fmt.Println(e.Conflicts[0].Field)
	}
	// Output:
	// /opt/lua /opt/lua/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	// Env["LUA_INIT"]
}
