// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/evoseal/containment/internal/testenv"
)

// childVariable names the file that the child of TestLoadAsAnotherUser loads.
const childVariable = "ISOLATION_TEST_LOAD"

func write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, data, mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

// operatorDir is a directory that only root can write, down from the top. The temporary one is everybody's, so it is
// made elsewhere.
func operatorDir(t *testing.T) string {
	t.Helper()
	testenv.Need(t, "root")
	dir, err := os.MkdirTemp("/var/lib", "isolation-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestLoadAsRoot(t *testing.T) {
	t.Parallel()
	dir := operatorDir(t)
	path := filepath.Join(dir, "override.json")
	write(t, path, canonicalJSON(goodOverride()), 0o644)
	o, err := LoadOverride(path)
	if err != nil || o.origin.path != path || !o.origin.byRoot || len(o.origin.digest) != 64 {
		t.Fatalf("%+v, %v", o, err)
	}
	link, second, open := filepath.Join(dir, "link"), filepath.Join(dir, "second"), filepath.Join(dir, "open")
	foreign, pipe, large := filepath.Join(dir, "foreign"), filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	write(t, open, canonicalJSON(goodOverride()), 0o666)
	write(t, foreign, canonicalJSON(goodOverride()), 0o644)
	write(t, large, append(canonicalJSON(goodOverride()), make([]byte, maxPermitFile)...), 0o644)
	loose := filepath.Join(dir, "loose")
	if err := errors.Join(os.Symlink(path, link), os.Chown(foreign, 65534, 65534), syscall.Mkfifo(pipe, 0o600),
		os.Mkdir(loose, 0o755), os.Chmod(loose, 0o1777)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(loose, "o"), canonicalJSON(goodOverride()), 0o644)
	for _, bad := range []string{link, open, foreign, pipe, large, filepath.Join(loose, "o"), filepath.Join(dir, "absent"), dir,
		"override.json", dir + "/../" + filepath.Base(dir) + "/override.json", ""} {
		var permit *PermitError
		if o, err := LoadOverride(bad); o != nil || !errors.As(err, &permit) || permit.Path != bad {
			t.Errorf("%q: %+v, %v", bad, o, err)
		}
	}
	if err := os.Link(path, second); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOverride(path); !errors.Is(err, ErrPermit) {
		t.Errorf("with a second name: %v", err)
	}
}

// What an ordinary user owns or can write is no permit for that user.
func TestLoadOwnFile(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "unprivileged")
	dir := t.TempDir()
	path := filepath.Join(dir, "approval.json")
	write(t, path, canonicalJSON(&Approval{}), 0o400)
	if _, err := LoadApproval(path); !errors.Is(err, ErrPermit) {
		t.Errorf("an approval of one's own: %v", err)
	}
	// Root's, but not such an object; the file itself is beyond reach.
	if data, _, err := readOthers("/etc/passwd"); err != nil || len(data) == 0 {
		t.Errorf("a file of root's: %v", err)
	}
}

// Another user loads what root has written, and nothing else.
func TestLoadAsAnotherUser(t *testing.T) {
	if path := os.Getenv(childVariable); path != "" {
		_, err := LoadOverride(path)
		if err != nil {
			os.Stdout.WriteString("REFUSED " + err.Error())
		} else {
			os.Stdout.WriteString("LOADED")
		}
		os.Exit(0)
	}
	t.Parallel()
	dir := operatorDir(t)
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "p.test"), program, 0o755) // go test's own directory is closed to others
	good, own, inOwn := filepath.Join(dir, "good"), filepath.Join(dir, "own"), filepath.Join(dir, "dir")
	write(t, good, canonicalJSON(goodOverride()), 0o444)
	write(t, own, canonicalJSON(goodOverride()), 0o444)
	if err := errors.Join(os.Chown(own, 65534, 65534), os.Mkdir(inOwn, 0o755), os.Chown(inOwn, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(inOwn, "o"), canonicalJSON(goodOverride()), 0o444)
	group := filepath.Join(dir, "group")
	write(t, group, canonicalJSON(goodOverride()), 0o464)
	for path, want := range map[string]string{good: "LOADED", own: "REFUSED", filepath.Join(inOwn, "o"): "REFUSED", group: "REFUSED"} {
		cmd := exec.Command(filepath.Join(dir, "p.test"), "-test.run=^TestLoadAsAnotherUser$")
		cmd.Env, cmd.Dir = []string{childVariable + "=" + path}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
}
