//go:build linux
package rlimit_test
import ("testing";"github.com/evoseal/containment/executor";"github.com/evoseal/containment/executor/rlimit")
func TestTM(t *testing.T){ ex:=newExecutor(t,rlimit.Config{}); w:=t.TempDir(); for range 12 { r,err:=ex.Run(t.Context(),executor.Spec{Args: []string{"/bin/true"},Workspace:w}); if err!=nil{t.Fatal(err)}; t.Log(r.Timing, r.Usage.Wall)} }
