// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/executor"
)

func TestTrue(t *testing.T) {
	t.Parallel()
	ex := usual(t)
	t.Log(ex.Capabilities())
	t.Log(ex.Fingerprint())
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, "a"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"/bin/true"}, {"sh", "-c", "cat a; id; pwd; env; echo err >&2; exit 3"}} {
		result, err := ex.Run(t.Context(), executor.Spec{Args: args, Workspace: ws})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v %d %s %+v %+v\n%s\n%s", result.Cause, result.ExitCode, result.Detail, result.Timing, result.Usage,
			result.Stdout, result.Stderr)
	}
}
