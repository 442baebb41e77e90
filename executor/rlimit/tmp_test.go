//go:build linux
package rlimit_test
import ("testing";"github.com/evoseal/containment/executor/rlimit")
func newExecutor(t testing.TB, c rlimit.Config) *rlimit.Executor {
	t.Helper()
	if c.StateDir == "" { c.StateDir = stateDir(t) }
	ex, err := rlimit.New(t.Context(), c)
	if err != nil { t.Fatal(err) }
	t.Cleanup(func() { if err := ex.Close(); err != nil { t.Error(err) } })
	return ex
}
