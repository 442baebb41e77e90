// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/scratch"
	"github.com/evoseal/containment/internal/testenv"
)

const runUID, runGID = 61234, 61235

// probeVariable makes this test binary a process of the run: it tries the calls that its arguments name, below the
// directory in the variable, and prints those that succeeded.
const probeVariable = "SCRATCH_TEST_PROBE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(probeVariable); dir != "" {
		probe(dir, os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

func probe(top string, attempts []string) {
	for _, a := range attempts {
		op, name, _ := strings.Cut(a, " ")
		p := filepath.Join(top, name)
		err := error(syscall.EINVAL)
		switch op {
		case "read":
			_, err = os.ReadFile(p)
		case "list":
			_, err = os.ReadDir(p)
		case "write":
			var f *os.File
			if f, err = os.OpenFile(p, os.O_WRONLY, 0); err == nil {
				err = f.Close()
			}
		case "create":
			err = os.WriteFile(p, []byte("x"), 0o600)
		case "chmod":
			err = os.Chmod(p, 0o777)
		case "remove":
			err = os.Remove(p)
		case "rename":
			err = os.Rename(p, p+".moved")
		case "over":
			if err = os.WriteFile(filepath.Join(top, "mine"), nil, 0o600); err == nil {
				err = os.Rename(filepath.Join(top, "mine"), p)
			}
		}
		if err == nil {
			os.Stdout.WriteString(a + "\n")
		}
	}
	os.Stdout.WriteString("done\n")
}

// asRun tries calls as the user of the run and returns those that succeeded.
func asRun(t *testing.T, dir string, attempts ...string) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0], attempts...)
	cmd.Env = []string{probeVariable + "=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: runUID, Gid: runGID}}
	// The test binary lies where only root can go.
	exe, err := os.Open("/proc/self/exe")
	check(t, err)
	defer exe.Close()
	cmd.ExtraFiles, cmd.Path = []*os.File{exe}, "/proc/self/fd/3"
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || lines[len(lines)-1] != "done" {
		t.Fatalf("probe did not run: %v, %q", err, out)
	}
	return lines[:len(lines)-1]
}

// reachable is a copy of src that the run's user can get at.
func reachable(t *testing.T, src string, o scratch.Options) string {
	t.Helper()
	dst := empty(t)
	check(t, os.Chmod(filepath.Dir(dst), 0o711))
	o.MaxBytes, o.MaxFiles, o.Owner = 1<<20, 1000, &scratch.Owner{UID: runUID, GID: runGID}
	_, err := scratch.Copy(t.Context(), src, dst, o)
	check(t, err)
	return dst
}

func TestOwnerGetsTheCopy(t *testing.T) {
	testenv.Need(t, "root")
	t.Parallel()
	src := plant(t, entry{"d/f", file("x", 0o600)}, entry{"d/l", link("f")}, entry{"e", dir(0o700)})
	dst := reachable(t, src, scratch.Options{})
	for _, name := range append(names(t, src), ".") {
		st := stat(t, filepath.Join(dst, strings.TrimRight(name, "/@")))
		if st.Uid != runUID || st.Gid != runGID {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
		if st := stat(t, filepath.Join(src, strings.TrimRight(name, "/@"))); st.Uid != 0 {
			t.Errorf("the original of %s belongs to %d", name, st.Uid)
		}
	}
	all := []string{"read d/f", "write d/f", "chmod d/f", "create e/new", "rename d/f"}
	if diff := cmp.Diff(all, asRun(t, dst, all...)); diff != "" {
		t.Errorf("the run can (-want +got):\n%s", diff)
	}
}

func TestReadOnlyAndSealed(t *testing.T) {
	testenv.Need(t, "root")
	t.Parallel()
	src := plant(t, entry{"cfg/safety/rules", file("x", 0o600)}, entry{"cfg/safety/sub/tool", file("x", 0o750)},
		entry{"cfg/free", file("x", 0o600)}, entry{"go.mod", file("x", 0o600)}, entry{"src/a", file("x", 0o600)},
		entry{"key", file("x", 0o644)}, entry{"keys/k", file("x", 0o644)}, entry{"pipe", fifo})
	dst := reachable(t, src, scratch.Options{
		ReadOnly: []string{"cfg/safety", "go.mod", "not/there"}, Sealed: []string{"key", "keys", "pipe", "nor/this"},
	})
	forbidden := []string{
		"write cfg/safety/rules", "chmod cfg/safety/rules", "remove cfg/safety/rules", "rename cfg/safety/rules",
		"over cfg/safety/rules", "create cfg/safety/new", "chmod cfg/safety", "rename cfg/safety",
		"write cfg/safety/sub/tool", "create cfg/safety/sub/new", "chmod cfg", "rename cfg",
		"write go.mod", "chmod go.mod", "remove go.mod", "rename go.mod", "over go.mod", "chmod .",
		"read key", "write key", "chmod key", "remove key", "rename key", "over key",
		"list keys", "read keys/k", "create keys/k", "chmod keys", "remove keys", "rename keys", "remove pipe",
	}
	if got := asRun(t, dst, forbidden...); len(got) > 0 {
		t.Errorf("the run can %q", got)
	}
	allowed := []string{
		"list .", "list cfg", "read go.mod", "read cfg/safety/rules", "list cfg/safety/sub", "read cfg/safety/sub/tool",
		"create new", "create cfg/new", "write cfg/free", "rename cfg/free", "create src/new", "remove src/a", "rename src",
	}
	if diff := cmp.Diff(allowed, asRun(t, dst, allowed...)); diff != "" {
		t.Errorf("the run can (-want +got):\n%s", diff)
	}
	for _, name := range []string{"not", "nor", "keys/k"} {
		if _, err := os.Lstat(filepath.Join(dst, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was made: %v", name, err)
		}
	}
}

// What will be covered needs no other user, is not read, and changes nothing above it.
func TestCovered(t *testing.T) {
	t.Parallel()
	src := plant(t, entry{"d/key", file("secret", 0o644)}, entry{"d/keys/k", file("secret", 0o644)}, entry{"d/free", file("x", 0o600)})
	dst := empty(t)
	o := scratch.Options{MaxBytes: 1 << 20, MaxFiles: 1000, Covered: []string{"d/key", "d/keys", "d/none"}}
	if _, err := scratch.Copy(t.Context(), src, dst, o); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"d", "d/key", "d/keys", "d/keys/k", "d/none", "d/free"} {
		if fi, err := os.Lstat(filepath.Join(dst, name)); err == nil {
			got[name] = fi.Mode().String()
		}
	}
	original, err := os.Stat(filepath.Join(src, "d"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"d": original.Mode().String(), "d/key": "----------", "d/keys": "d---------", "d/free": "-rw-------"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modes (-want +got):\n%s", diff)
	}
	if fi, err := os.Lstat(filepath.Join(dst, "d/key")); err != nil || fi.Size() != 0 {
		t.Errorf("a covered file has content: %v, %v", fi, err)
	}
}

func TestReadOnlyAll(t *testing.T) {
	testenv.Need(t, "root")
	t.Parallel()
	src := plant(t, entry{"d/f", file("x", 0o600)}, entry{"f", file("x", 0o600)})
	dst := reachable(t, src, scratch.Options{ReadOnly: []string{"."}})
	forbidden := []string{"create new", "write f", "remove f", "chmod f", "chmod .", "create d/new", "remove d/f", "rename d"}
	if got := asRun(t, dst, forbidden...); len(got) > 0 {
		t.Errorf("the run can %q", got)
	}
	if diff := cmp.Diff([]string{"read d/f", "list ."}, asRun(t, dst, "read d/f", "list .")); diff != "" {
		t.Errorf("the run can (-want +got):\n%s", diff)
	}
}

// A rule for a path that leads through a link would miss what the link names.
func TestRulesThroughLinks(t *testing.T) {
	testenv.Need(t, "root")
	t.Parallel()
	src := plant(t, entry{"real/f", file("x", 0o600)}, entry{"l", link("real")}, entry{"lf", link("real/f")})
	for name, o := range map[string]scratch.Options{
		"read-only below": {ReadOnly: []string{"l/f"}}, "read-only itself": {ReadOnly: []string{"lf"}},
		"sealed below": {Sealed: []string{"l/f"}}, "omitted below": {Omit: []string{"l/f"}},
	} {
		o.MaxBytes, o.MaxFiles, o.Owner = 1<<20, 1000, &scratch.Owner{UID: runUID, GID: runGID}
		if _, err := scratch.Copy(t.Context(), src, empty(t), o); !errors.Is(err, scratch.ErrThroughLink) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
