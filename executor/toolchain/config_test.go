// SPDX-License-Identifier: Apache-2.0

//go:build linux

package toolchain_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/toolchain"
	"github.com/evoseal/containment/internal/testenv"
)

func TestConfigFaults(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]toolchain.GoConfig{
		"Program":                {Program: "go"},
		"Flags[0]":               {Flags: []string{"race"}},
		"Flags[1]":               {Flags: []string{"-race", "-tags=a b"}},
		"Flags[2]":               {Flags: []string{"-a", "-b", `-ldflags="x`}},
		"Seed.Dir":               {Seed: toolchain.GoSeed{Dir: "seeds", Module: "/m"}},
		"Seed.Dir:":              {Seed: toolchain.GoSeed{Module: "/m"}},
		"Seed.Dir: ":             {Seed: toolchain.GoSeed{Extra: []string{"std"}}},
		"Seed.Dir: \"/a b\"":     {Seed: toolchain.GoSeed{Dir: "/a b", Module: "/m"}},
		"Seed.Dir: \"/m/seeds\"": {Seed: toolchain.GoSeed{Dir: "/m/seeds", Module: "/m"}},
		"Seed.Dir: \"/m\"":       {Seed: toolchain.GoSeed{Dir: "/m", Module: "/m/x"}},
		"Seed.Module":            {Seed: toolchain.GoSeed{Dir: "/d"}},
		"Seed.ModCache":          {Seed: toolchain.GoSeed{Dir: "/d", Module: "/m", ModCache: "c"}},
		"Seed.BuildCache":        {Seed: toolchain.GoSeed{Dir: "/d", Module: "/m", BuildCache: "c"}},
		"Seed.Packages and Extra, number 1": {
			Seed: toolchain.GoSeed{Dir: "/d", Module: "/m", Packages: []string{"a"}, Extra: []string{"-exec=x"}},
		},
	} {
		_, err := toolchain.Go(t.Context(), c)
		if !errors.Is(err, toolchain.ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err := toolchain.Seed(t.Context(), toolchain.GoConfig{})
	if !errors.Is(err, toolchain.ErrConfig) {
		t.Error(err)
	}
	for _, c := range []toolchain.PythonConfig{
		{Program: "python3"}, {Packages: []string{"lib"}}, {Packages: []string{"/a:b"}}, {Packages: []string{"/missing/x"}},
	} {
		if _, err := toolchain.Python(t.Context(), c); !errors.Is(err, toolchain.ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := toolchain.Node(t.Context(), toolchain.NodeConfig{Program: "node"}); !errors.Is(err, toolchain.ErrConfig) {
		t.Error(err)
	}
}

// find looks for a program with each of the functions.
var finders = map[string]func(t *testing.T, program string) (*toolchain.Toolchain, error){
	"go": func(t *testing.T, p string) (*toolchain.Toolchain, error) {
		return toolchain.Go(t.Context(), toolchain.GoConfig{Program: p})
	},
	"python3": func(t *testing.T, p string) (*toolchain.Toolchain, error) {
		return toolchain.Python(t.Context(), toolchain.PythonConfig{Program: p})
	},
	"node": func(t *testing.T, p string) (*toolchain.Toolchain, error) {
		return toolchain.Node(t.Context(), toolchain.NodeConfig{Program: p})
	},
}

// A program that is missing, cannot be trusted, or is no such program: an error that says what to install.
func TestNotUsable(t *testing.T) {
	d := dir(t)
	ran := filepath.Join(d, "ran")
	script := func(path string, mode os.FileMode, text string) string {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	touch := "echo x > " + ran + "\n"
	open := script(filepath.Join(d, "open", "x"), 0o755, touch)
	if err := os.Chmod(filepath.Dir(open), 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(d, "link")
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"missing":              filepath.Join(d, "missing"),
		"a directory":          d,
		"not executable":       script(filepath.Join(d, "plain"), 0o644, touch),
		"writable for others":  script(filepath.Join(d, "writable"), 0o757, touch),
		"in an open directory": open,
		"by a link":            link,
		"fails":                script(filepath.Join(d, "fails"), 0o755, "exit 1"),
		"talks nonsense":       script(filepath.Join(d, "nonsense"), 0o755, "echo '{}{}'"),
		"talks without end":    script(filepath.Join(d, "endless"), 0o755, "yes"),
	}
	if os.Getuid() == 0 {
		foreign := script(filepath.Join(d, "foreign"), 0o755, touch)
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		tests["of another user"] = foreign
		tests["not reachable"] = script(filepath.Join(d, "private", "x"), 0o755, touch)
		if err := os.Chmod(filepath.Join(d, "private"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, find := range finders {
		for what, program := range tests {
			tc, err := find(t, program)
			e, ok := errors.AsType[*executor.UnsupportedError](err)
			if tc != nil || !ok || !errors.Is(err, executor.ErrUnsupported) || !strings.Contains(e.Fix, "install") {
				t.Errorf("%s, %s: %+v %v", name, what, tc, err)
			}
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program was started that cannot be trusted")
	}
}

// A program is found through PATH, but not through what is relative in it or what others can write to.
func TestSearch(t *testing.T) {
	testenv.Need(t, "python3")
	d := dir(t)
	evil := "#!/bin/sh\necho x > " + d + "/ran\n"
	for name, mode := range map[string]os.FileMode{"relative": 0o755, "open": 0o777} {
		path := filepath.Join(write(t, d, map[string]string{name + "/python3": evil}), name)
		if err := errors.Join(os.Chmod(path, mode), os.Chmod(filepath.Join(path, "python3"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(d)
	t.Setenv("PATH", "relative::.:"+filepath.Join(d, "open"))
	tc, err := toolchain.Python(t.Context(), toolchain.PythonConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(tc.Program, d) {
		t.Errorf("%+v", tc)
	}
	if _, err := os.Stat(filepath.Join(d, "ran")); err == nil {
		t.Error("a program was started that cannot be trusted")
	}
	// A shim, such as pyenv's, is asked what it starts.
	shim := filepath.Join(d, "shims")
	write(t, shim, map[string]string{"python3": "#!/bin/sh\nexec " + tc.Program + " \"$@\"\n"})
	if err := os.Chmod(filepath.Join(shim, "python3"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", shim)
	through, err := toolchain.Python(t.Context(), toolchain.PythonConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tc, through); diff != "" {
		t.Errorf("(-directly +by the shim):\n%s", diff)
	}
}

// The host program's environment reaches neither the programs that are asked nor the toolchain.
func TestHostEnvironment(t *testing.T) {
	for name := range finders {
		testenv.Need(t, name)
	}
	poisoned := map[string]string{
		"GOFLAGS": "-mod=vendor", "GOROOT": "/missing", "GOOS": "plan9", "CGO_ENABLED": "7", "GOPROXY": "http://127.0.0.1:1",
		"PYTHONHOME": "/missing", "PYTHONPATH": "/missing", "NODE_OPTIONS": "--no-such-option", "GODEBUG": "gocachehash=1",
	}
	for name, value := range poisoned {
		t.Setenv(name, value)
	}
	for name, find := range finders {
		tc, err := find(t, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for variable, value := range poisoned {
			if tc.Env[variable] == value {
				t.Errorf("%s: %s=%s", name, variable, value)
			}
		}
		for _, m := range tc.Mounts {
			if m.CopyOnWrite || m.Target != m.Source {
				t.Errorf("%s: mount %+v", name, m)
			}
		}
	}
}

func TestGoEnvironment(t *testing.T) {
	testenv.Need(t, "go")
	tc, err := toolchain.Go(t.Context(), toolchain.GoConfig{Flags: []string{"-tags=a,b"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"GOENV": "off", "GOTOOLCHAIN": "local", "GOPROXY": "off", "GOSUMDB": "off", "GOWORK": "off",
		"GOFLAGS": "-buildvcs=false -tags=a,b", "GOROOT": filepath.Dir(filepath.Dir(tc.Program)),
		"CGO_ENABLED": tc.Env["CGO_ENABLED"],
	}
	if diff := cmp.Diff(want, tc.Env); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(tc.Version, "go1.") || !strings.Contains("01", tc.Env["CGO_ENABLED"]) {
		t.Errorf("%+v", tc)
	}
}

// A program that does not answer is killed with what it started.
func TestProbeEnds(t *testing.T) {
	d := dir(t)
	pidFile := filepath.Join(d, "pid")
	script := "#!/bin/sh\nsleep 1000 & echo $! > " + pidFile + "\nwait\n"
	program := filepath.Join(write(t, d, map[string]string{"slow": script}), "slow")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	errStarted := errors.New("the child has started")
	ctx, cancel := context.WithCancelCause(t.Context())
	var pid int
	go func() {
		for pid == 0 && ctx.Err() == nil {
			text, _ := os.ReadFile(pidFile)
			pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
			time.Sleep(time.Millisecond)
		}
		cancel(errStarted)
	}()
	_, err := toolchain.Node(ctx, toolchain.NodeConfig{Program: program})
	if !errors.Is(err, errStarted) || errors.Is(err, executor.ErrUnsupported) {
		t.Errorf("%v", err)
	}
	// Whoever adopts orphans here may take its time; a zombie is as dead as one can be.
	for range 1000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}
