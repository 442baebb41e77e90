// SPDX-License-Identifier: Apache-2.0

package toolchain_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/toolchain"
)

// A Go that is found may name a GOROOT whose programs somebody else can replace. They would be started as the caller.
func TestProgramsOfGOROOT(t *testing.T) {
	t.Parallel()
	root := dir(t)
	programs := []string{"bin/go", "pkg/tool/linux_amd64/compile"}
	script := "#!/bin/sh\necho '{\"GOROOT\":\"" + root + "\",\"GOVERSION\":\"go1.26.5\"}'\n"
	for _, p := range append(programs, "found") {
		p = filepath.Join(root, p)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(script), 0o755), os.Chmod(p, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	c := toolchain.GoConfig{Program: filepath.Join(root, "found")}
	if _, err := toolchain.Go(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(programs, "bin", "pkg/tool/linux_amd64") {
		p = filepath.Join(root, p)
		if err := os.Chmod(p, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := toolchain.Go(t.Context(), c); !errors.Is(err, executor.ErrUnsupported) {
			t.Errorf("%s: %v", p, err)
		}
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
