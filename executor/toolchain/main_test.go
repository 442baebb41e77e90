// SPDX-License-Identifier: Apache-2.0

//go:build linux

package toolchain_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/executor/toolchain"
	"github.com/evoseal/containment/internal/testenv"
)

// childSeedDir makes the test binary a program that makes a seed: for tests that kill one.
const childSeedDir = "TOOLCHAIN_TEST_SEED_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childSeedDir); dir != "" {
		_, err := toolchain.Seed(context.Background(), toolchain.GoConfig{Seed: toolchain.GoSeed{
			Dir: dir, Module: os.Getenv("TOOLCHAIN_TEST_MODULE"), BuildCache: os.Getenv("TOOLCHAIN_TEST_GOCACHE"),
		}})
		fmt.Println(err)
		return
	}
	code := m.Run()
	if err := removeShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// executors are the constructors over which everything here runs that runs anything inside. With chmod a run may change
// the mode of its own files, which is not a matter of course in every executor.
var executors = []struct {
	name string
	make func(t testing.TB, chmod bool) executor.Executor
}{
	{"rlimit", func(t testing.TB, chmod bool) executor.Executor {
		ex, err := rlimit.New(t.Context(), rlimit.Config{StateDir: dir(t), PathMetadata: chmod})
		closeLater(t, ex, err)
		return ex
	}},
	{"bubblewrap", func(t testing.TB, _ bool) executor.Executor {
		testenv.Need(t, "bubblewrap")
		ex, err := bubblewrap.New(t.Context(), bubblewrap.Config{StateDir: dir(t)})
		closeLater(t, ex, err)
		return ex
	}},
}

func closeLater(t testing.TB, ex io.Closer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ex.Close(); err != nil {
			t.Error(err)
		}
	})
}

// dir is a directory that the uid of a run can reach, and that can be removed whatever is in it.
func dir(t testing.TB) string {
	t.Helper()
	d, err := os.MkdirTemp("", "toolchain-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(d, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeAll(d); err != nil {
			t.Error(err)
		}
	})
	return d
}

func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// goEnv asks for the caches of whoever runs the tests.
func goEnv(t testing.TB, name string) string {
	t.Helper()
	testenv.Need(t, "go-caches")
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

const doublestar = "github.com/bmatcuk/doublestar/v4"

// sample is a small module that uses another one.
func sample(t testing.TB) map[string]string {
	t.Helper()
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	var sum, version string
	for line := range strings.Lines(string(sums)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == doublestar {
			sum += line
			version = strings.TrimSuffix(fields[1], "/go.mod")
		}
	}
	return map[string]string{
		"go.mod": "module sample.test/m\n\ngo 1.24\n\nrequire " + doublestar + " " + version + "\n",
		"go.sum": sum,
		"m.go": `package m

import "github.com/bmatcuk/doublestar/v4"

func Match(p, s string) bool { ok, _ := doublestar.Match(p, s); return ok }
`,
		"m_test.go": `package m

import "testing"

func TestMatch(t *testing.T) {
	if !Match("a/**/b", "a/x/y/b") {
		t.Fatal("no match")
	}
}
`,
	}
}

func write(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shared is the seed that most tests use. Making it takes seconds.
var shared struct {
	once   sync.Once
	dir    string
	config toolchain.GoConfig
	tc     *toolchain.Toolchain
	err    error
}

func removeShared() error {
	if shared.dir == "" {
		return nil
	}
	return removeAll(shared.dir)
}

func seeded(t testing.TB) *toolchain.Toolchain {
	t.Helper()
	testenv.Need(t, "go")
	build, modules := goEnv(t, "GOCACHE"), goEnv(t, "GOMODCACHE")
	files := sample(t)
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "toolchain-test-"); shared.err != nil {
			return
		}
		if shared.err = os.Chmod(shared.dir, 0o755); shared.err != nil {
			return
		}
		shared.config.Seed = toolchain.GoSeed{
			Dir: filepath.Join(shared.dir, "seeds"), Module: write(t, filepath.Join(shared.dir, "trusted"), files),
			Extra: []string{"encoding/csv", "log"}, BuildCache: build, ModCache: modules,
		}
		defer syscall.Umask(syscall.Umask(0o077)) // a seed has its own modes
		shared.tc, shared.err = toolchain.Go(context.Background(), shared.config)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.tc
}

// inside runs the command with the toolchain.
func inside(
	t testing.TB, ex executor.Executor, tc *toolchain.Toolchain, workspace string, args ...string,
) *executor.Result {
	t.Helper()
	spec := executor.Spec{Args: args, Workspace: workspace, Require: executor.NetworkOff}
	if err := tc.Apply(&spec); err != nil {
		t.Fatal(err)
	}
	r, err := ex.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func passed(t testing.TB, r *executor.Result) {
	t.Helper()
	if !r.OK() {
		t.Fatalf("%v, code %d, %s\n%s\n%s", r.Cause, r.ExitCode, r.Detail, r.Stdout, r.Stderr)
	}
}
