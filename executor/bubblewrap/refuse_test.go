// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bubblewrap_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/executor/internal/runtest"
	"github.com/evoseal/containment/internal/testenv"
)

// refused demands an error of New with these parts in its reason and its fix.
func refused(t *testing.T, err error, reason, fix string) {
	t.Helper()
	u, ok := errors.AsType[*executor.UnsupportedError](err)
	switch {
	case !ok || !errors.Is(err, executor.ErrUnsupported) || !errors.Is(err, errors.ErrUnsupported):
		t.Errorf("error %v, want ErrUnsupported", err)
	case u.Executor != "bubblewrap" || !strings.Contains(u.Reason, reason) || !strings.Contains(u.Fix, fix):
		t.Errorf("reason %q, fix %q; want %q and %q", u.Reason, u.Fix, reason, fix)
	}
}

// fakeProgram writes a shell script that stands for bubblewrap.
func fakeProgram(t *testing.T, version, body string) string {
	t.Helper()
	dir := runtest.StateDir(t)
	path := filepath.Join(dir, "bwrap")
	script := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo \"" + version + "\"; exit 0; fi\n" + body + "\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProgramIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ path, reason, fix string }{
		"missing":      {"/no/such/bwrap", "no program /no/such/bwrap", "install"},
		"relative":     {"bwrap", "not absolute", "Config.Path"},
		"too old":      {fakeProgram(t, "bubblewrap 0.7.0", ""), "too old", "0.8"},
		"another one":  {fakeProgram(t, "true (GNU coreutils) 9.1", ""), "is not bubblewrap", "Config.Path"},
		"fails":        {"/bin/false", "--version", "install"},
		"no directory": {"/bin", "--version", "install"},
	} {
		ex, err := bubblewrap.New(t.Context(), bubblewrap.Config{Path: tc.path, StateDir: runtest.StateDir(t)})
		if ex != nil {
			t.Errorf("%s: there is an executor", name)
		}
		refused(t, err, tc.reason, tc.fix)
	}
}

// What bubblewrap prints reaches the error of New, classified, and its own words beside it.
func TestFailureIsClassified(t *testing.T) {
	for message, reason := range map[string]string{
		"bwrap: Failed to make / slave: Permission denied":                           "CAP_SYS_ADMIN",
		"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted":               "AppArmor",
		"bwrap: Can't mount proc on /newroot/proc: Operation not permitted":          "fresh /proc",
		"bwrap: setting up uid map: Permission denied":                               "uid map",
		"bwrap: Unexpected capabilities but not setuid, old file caps config?":       "ambient",
		"bwrap: Creating new namespace failed: max_*_namespaces exceeded (ENOSPC)":   "max_user_namespaces",
		"bwrap: No permissions to create new namespace, likely because of something": "forbid",
	} {
		path := fakeProgram(t, "bubblewrap 0.8.0", "cat >/dev/null; echo \""+message+"\" >&2; exit 1")
		ex, err := bubblewrap.New(t.Context(), bubblewrap.Config{Path: path, StateDir: runtest.StateDir(t)})
		if ex != nil {
			t.Errorf("%s: there is an executor", message)
		}
		refused(t, err, reason, "")
		if start, ok := errors.AsType[*bubblewrap.StartError](err); !ok || start.Output != message {
			t.Errorf("%s: error %v holds %+v", message, err, start)
		}
	}
}

// A wrapper that starts our init without any namespace, or nothing at all, is not believed.
func TestWrapperIsNotBelieved(t *testing.T) {
	for name, tc := range map[string]struct{ body, reason string }{
		"no namespace": {`shift 3; exec "$@"`, "trial run failed"},
		"no init":      {"exit 0", "bubblewrap failed"},
		"another init": {"exec true", "bubblewrap failed"},
		"killed":       {"kill -9 $$", "bubblewrap failed"},
	} {
		t.Run(name, func(t *testing.T) {
			path := fakeProgram(t, "bubblewrap 0.8.0", tc.body)
			ex, err := bubblewrap.New(t.Context(), bubblewrap.Config{Path: path, StateDir: runtest.StateDir(t)})
			if ex != nil {
				t.Error("there is an executor")
			}
			refused(t, err, tc.reason, "")
		})
	}
}

func TestConfigIsRefused(t *testing.T) {
	for name, c := range map[string]bubblewrap.Config{
		"negative size": {WorkspaceBytes: -1}, "missing read": {Reads: []string{"/no/such/file"}}, "own place": {Reads: []string{"/proc"}},
		"everything": {Reads: []string{"/"}}, "unclean": {Reads: []string{"/usr/../etc/ssl"}}, "state": {StateDir: "/dev/null/x"},
	} {
		ex, err := bubblewrap.New(t.Context(), c)
		if ex != nil || !errors.Is(err, executor.ErrUnsupported) {
			t.Errorf("%s: %v, %v; want ErrUnsupported", name, ex, err)
		}
		if u, ok := errors.AsType[*executor.UnsupportedError](err); ok && (u.Reason == "" || u.Fix == "") {
			t.Errorf("%s: reason %q, fix %q", name, u.Reason, u.Fix)
		}
	}
}

const hostMarker = "CONTAINMENT_TEST_HOST"

// hosts are conditions that a child of the test makes for itself before it calls New.
var hosts = map[string]func() error{
	"no user namespaces": func() error { return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0) },
	"covered proc": func() error {
		return errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("/dev/null", "/proc/version", "", unix.MS_BIND, ""))
	},
	"one uid": func() error { return nil },
}

// asHost is the child: it reports what New says.
func asHost(condition string) {
	err := hosts[condition]()
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	ctx, cancel := testContext()
	defer cancel()
	ex, err := bubblewrap.New(ctx, bubblewrap.Config{StateDir: os.Getenv(hostMarker + "_STATE")})
	if err == nil {
		_ = ex.Close()
		fmt.Println("{}")
		os.Exit(0)
	}
	u, _ := errors.AsType[*executor.UnsupportedError](err)
	if u == nil {
		u = &executor.UnsupportedError{Reason: "not typed: " + err.Error()}
	}
	u.Err = nil
	_ = json.NewEncoder(os.Stdout).Encode(u)
	os.Exit(0)
}

// The conditions that can be made are made, in namespaces of a child.
func TestHostsThatCannot(t *testing.T) {
	testenv.Need(t, "root")
	testenv.Need(t, "userns")
	everybody := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
	me := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	for condition, tc := range map[string]struct {
		flags       uintptr
		ids         []syscall.SysProcIDMap
		reason, fix string
	}{
		"no user namespaces": {syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, everybody, "user.max_user_namespaces is 0", "raise"},
		"covered proc":       {syscall.CLONE_NEWNS, nil, "mounted on /proc/version", "unmasked"},
		"one uid":            {syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, me, "no unprivileged uid", "map the range"},
	} {
		t.Run(condition, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
			cmd.Env = []string{hostMarker + "=" + condition, hostMarker + "_STATE=" + runtest.StateDir(t), "TMPDIR=" + os.TempDir()}
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: tc.flags, UidMappings: tc.ids, GidMappings: tc.ids, GidMappingsEnableSetgroups: true}
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var u executor.UnsupportedError
			if err := json.Unmarshal(out, &u); err != nil || u.Reason == "" {
				t.Fatalf("New succeeded, or said %s", out)
			}
			refused(t, &u, tc.reason, tc.fix)
		})
	}
}

// What stands in for the host's files is complete or not there: what a killed program left half done is not used.
func TestViewIsComplete(t *testing.T) {
	state := runtest.StateDir(t)
	newExecutor(t, bubblewrap.Config{StateDir: state})
	views, err := filepath.Glob(filepath.Join(state, "view-*"))
	if err != nil || len(views) != 1 {
		t.Fatalf("views %q, %v", views, err)
	}
	if err := os.Rename(views[0], views[0]+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(views[0]+".new", "etc", "passwd")); err != nil {
		t.Fatal(err)
	}
	ex := newExecutor(t, bubblewrap.Config{StateDir: state})
	says(t, ex, executor.Spec{Args: []string{"id", "-un"}, Workspace: t.TempDir()}, "containment\n")
	if again, err := filepath.Glob(filepath.Join(state, "view-*")); err != nil || len(again) != 1 {
		t.Errorf("views %q, %v", again, err)
	}
}
