// SPDX-License-Identifier: Apache-2.0

// Package testenv is the one place where a test of this module may skip. A test that depends on something of the host
// says so by name:
//
//	testenv.Need(t, "landlock")
//
// If the host has the component, the test goes on, and `go test -json` shows the attribute need.landlock=met. If not,
// the test is skipped with the reason and the way to get the component, so that a plain `go test ./...` works anywhere.
//
// A skipped test proves nothing, and nobody reads skips. The environment variable CONTAINMENT_REQUIRE therefore turns
// them into failures: it holds a comma-separated list of components, or "all". The gate sets "all". A name in the list
// is demanded of everybody. "all" demands what every host can have, and from each identity what only that identity can
// have: an ordinary caller is not asked for "root", nor root for "unprivileged". What depends on the file system under
// the temporary directory, such as "reflink", is demanded by name only. The variable can only make tests stricter, and
// a name in it that nobody knows fails every test that asks for anything.
//
// # What it does not do
//
// It installs nothing, and it leaves nothing behind: no mount, no cgroup, no file. It does not say how good a component
// is, only that it works at all for the caller. It is for tests; production code probes the host by itself.
package testenv

import (
	"fmt"
	"os"
	"testing"
)

// RequireVariable names the environment variable that turns skips into failures.
const RequireVariable = "CONTAINMENT_REQUIRE"

// The values of the attribute "need.<component>". The gate reads them: a component that "all" demands of nobody may be
// missing in every pass, any other must be met in at least one.
const (
	attrMet             = "met"
	attrMissing         = "missing"
	attrMissingOptional = "missing-optional"
)

// Need returns if this host has the component for this caller. Otherwise it skips the test, or fails it if
// CONTAINMENT_REQUIRE demands the component. A component that is not in the table of this package, here or in
// CONTAINMENT_REQUIRE, fails the test: a typing error must not switch a test off.
//
// Each component is probed once per process.
func Need(t testing.TB, component string) {
	t.Helper()
	c, known := table[component]
	if !known {
		t.Fatalf("testenv: component %q is not known; the table in internal/testenv lists %v", component, Components())
	}
	required, err := parseRequire(os.Getenv(RequireVariable))
	if err != nil {
		t.Fatal(err)
	}
	reason := c.probe()
	if reason == nil {
		t.Attr("need."+component, attrMet)
		return
	}
	t.Attr("need."+component, c.missing())
	message := fmt.Sprintf("testenv: this test needs %q: %v; how to get it: %s", component, reason, c.get)
	if required.demands(component, c, os.Getuid()) {
		t.Fatalf("%s (%s demands it)", message, RequireVariable)
	}
	t.Skip(message)
}
