// SPDX-License-Identifier: Apache-2.0

package box_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor/containerd/internal/box"
	"github.com/evoseal/containment/executor/containerd/internal/box/supervisor"
	"github.com/evoseal/containment/internal/testenv"
)

// The tests here do not run beside others: a file that another child has open for writing cannot be executed.

// moved replaces the directory of a box by the one on the host.
func moved(args []string, dir string) []string {
	var list []string
	for _, a := range args {
		list = append(list, strings.Replace(a, box.SupervisorDir, dir, 1))
	}
	return list
}

// The running program is installed with whatever it needs: what lies in the directory starts by itself, in an empty root
// too, and comes as far as our code. As another process than 1 it is the ordinary program.
func TestInstallOwn(t *testing.T) {
	dir := t.TempDir()
	in, err := box.Install(dir, "", -1)
	if err != nil {
		t.Fatal(err)
	}
	if in.Form != box.FormStatic && in.Form != box.FormDynamic || in.Size == 0 || !strings.HasPrefix(in.Digest, "sha256:") {
		t.Errorf("%+v", in)
	}
	if in.Args[len(in.Args)-1] != supervisor.Marker {
		t.Errorf("arguments %q", in.Args)
	}
	args := moved(in.Args, dir)
	args[len(args)-1] = "-test.list=^TestInstallOwn$"
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "TestInstallOwn\n") {
		t.Errorf("%v: %s", err, out)
	}
	again, err := box.Install(t.TempDir(), "", -1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, again); diff != "" {
		t.Errorf("not the same twice:\n%s", diff)
	}
	if _, err := box.Install(dir, "", -1); !errors.Is(err, os.ErrExist) {
		t.Errorf("into a directory that is not empty: %v", err)
	}
}

// build builds the program of cmd/containment-init.
func build(t *testing.T, env ...string) string {
	t.Helper()
	testenv.Need(t, "go")
	testenv.Need(t, "go-caches")
	path := filepath.Join(t.TempDir(), "init")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, "../../cmd/containment-init")
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func TestInstallProgram(t *testing.T) {
	path := build(t, "CGO_ENABLED=0")
	dir := t.TempDir()
	in, err := box.Install(dir, path, -1)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{box.SupervisorDir + "/containment-init", supervisor.Marker}
	if diff := cmp.Diff(want, in.Args); diff != "" || in.Form != box.FormInstalled {
		t.Errorf("form %s, arguments %s", in.Form, diff)
	}
	// Elsewhere than as process 1 of a box it does nothing.
	if out, err := exec.Command(moved(in.Args, dir)[0], supervisor.Marker).CombinedOutput(); err == nil || len(out) == 0 {
		t.Errorf("%v: %s", err, out)
	}
	for _, bad := range []string{"/bin/sh", "/etc/passwd", "/no/such/file"} {
		if _, err := box.Install(t.TempDir(), bad, -1); !errors.Is(err, box.ErrProgram) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
