// SPDX-License-Identifier: Apache-2.0

//go:build linux

package toolchain_test

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/toolchain"
	"github.com/evoseal/containment/internal/testenv"
)

// tiny is the cheapest seed there is: a module without tests or imports.
func tiny(t testing.TB) toolchain.GoConfig {
	t.Helper()
	testenv.Need(t, "go")
	d := dir(t)
	return toolchain.GoConfig{Seed: toolchain.GoSeed{
		Dir: filepath.Join(d, "seeds"),
		Module: write(t, filepath.Join(d, "trusted"), map[string]string{
			"go.mod": "module x.test/x\n\ngo 1.24\n", "x.go": "package x\n",
		}),
		BuildCache: goEnv(t, "GOCACHE"),
	}}
}

func seedOf(t testing.TB, c toolchain.GoConfig) string {
	t.Helper()
	seed, err := toolchain.Seed(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// seeds lists the directories of seeds.
func seeds(t testing.TB, c toolchain.GoConfig) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(c.Seed.Dir, "go-*"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(p string) bool { return strings.HasSuffix(p, ".lock") })
}

// Another seed is made when anything differs that it depends on, and only then.
func TestSeedKey(t *testing.T) {
	c := tiny(t)
	key := func(c toolchain.GoConfig) string {
		t.Helper()
		dir, err := toolchain.SeedDir(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	first := key(c)
	if again := key(c); again != first {
		t.Errorf("%s, and then %s", first, again)
	}
	// The trusted version's own code is not part of it.
	write(t, c.Seed.Module, map[string]string{"x.go": "package x\n\nconst X = 1\n"})
	if again := key(c); again != first {
		t.Errorf("%s, and after a change %s", first, again)
	}
	flags, extra, packages := c, c, c
	flags.Flags = []string{"-tags=other"}
	extra.Seed.Extra = []string{"errors"}
	packages.Seed.Packages = []string{"."}
	for name, c := range map[string]toolchain.GoConfig{
		"other flags": flags, "another extra": extra, "other packages": packages,
	} {
		if key(c) == first {
			t.Errorf("%s: the seed is the same", name)
		}
	}
	for name, files := range map[string]map[string]string{
		"go.mod":         {"go.mod": "module x.test/x\n\ngo 1.23\n"},
		"another import": {"x.go": "package x\n\nimport _ \"errors\"\n"},
	} {
		write(t, c.Seed.Module, files)
		if key(c) == first {
			t.Errorf("%s: the seed is the same", name)
		}
	}
}

// A seed is nobody's to write to, and everybody's to read.
func TestSeedModes(t *testing.T) {
	for path, text := range digest(t, seeded(t).Seed) {
		mode, _, _ := strings.Cut(text, " ")
		if strings.Contains(mode, "w") || strings.Count(mode, "r") != 3 {
			t.Errorf("%s has mode %s", path, mode)
		}
	}
}

// Several at once make one seed, and all get it. What could be changed by somebody is then refused.
func TestSeed(t *testing.T) {
	c := tiny(t)
	var wg sync.WaitGroup
	got := make([]string, 3)
	errs := make([]error, len(got))
	for i := range got {
		wg.Go(func() { got[i], errs[i] = toolchain.Seed(t.Context(), c) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(seeds(t, c), slices.Compact(got)); diff != "" {
		t.Errorf("(-there +returned):\n%s", diff)
	}
	testRefused(t, c, got[0])
}

// testRefused changes a seed in every way that matters: Go refuses it, Apply does, and the error names what it is.
func testRefused(t *testing.T, c toolchain.GoConfig, seed string) {
	tc, err := toolchain.Go(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	outputs, err := filepath.Glob(filepath.Join(seed, "cache", "*-d"))
	outputs = slices.DeleteFunc(outputs, func(path string) bool { // what a tool printed may well be nothing
		fi, err := os.Lstat(path)
		return err == nil && fi.Size() == 0
	})
	if err != nil || len(outputs) == 0 {
		t.Fatal(outputs, err)
	}
	chmod := func(mode fs.FileMode) func(string) error {
		return func(path string) error { return os.Chmod(path, mode) }
	}
	replace := func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		data[len(data)/2] ^= 1
		return errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, data, 0o644), os.Chmod(path, 0o444))
	}
	give := func(path string) error { return os.Lchown(path, 65534, -1) }
	for _, tt := range []struct {
		name, path string
		spoil      func(string) error
		byApply    bool // the check before each run is not the whole one
		root       bool
	}{
		{"index writable for others", "cache/index", chmod(0o446), true, false},
		{"program writable for the group", "seedcache", chmod(0o575), true, false},
		{"directory writable for others", "cache", chmod(0o557), true, false},
		{"seed writable for others", ".", chmod(0o1777), true, false},
		{"all seeds writable for others", "..", chmod(0o777), true, false},
		{"output writable for others", "cache/" + filepath.Base(outputs[0]), chmod(0o446), false, false},
		{"output replaced", "cache/" + filepath.Base(outputs[0]), replace, false, false},
		{"index replaced", "cache/index", replace, false, false},
		{"program replaced", "seedcache", replace, false, false},
		{"index of another user", "cache/index", give, true, true},
		{"output of another user", "cache/" + filepath.Base(outputs[0]), give, false, true},
		{"not reachable", "..", chmod(0o700), true, true},
	} {
		if tt.root && os.Getuid() != 0 {
			continue
		}
		path := filepath.Join(seed, tt.path)
		fi, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		var data []byte
		if fi.Mode().IsRegular() {
			if data, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := tt.spoil(path); err != nil {
			t.Fatal(err)
		}
		_, err = toolchain.Go(t.Context(), c)
		if e, ok := errors.AsType[*toolchain.SeedError](err); !ok || !errors.Is(err, toolchain.ErrSeed) || e.Fix == "" {
			t.Errorf("%s: Go: %v", tt.name, err)
		} else if !strings.Contains(err.Error(), filepath.Clean(path)) && !strings.Contains(err.Error(), "cache/index") {
			t.Errorf("%s: %v does not name %s", tt.name, err, path)
		}
		var spec executor.Spec
		if err := tc.Apply(&spec); errors.Is(err, toolchain.ErrSeed) != tt.byApply || tt.byApply == (spec.Env != nil) {
			t.Errorf("%s: Apply: %v", tt.name, err)
		}
		err = nil
		if data != nil {
			err = errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, data, 0o644))
		}
		if err := errors.Join(err, os.Lchown(path, os.Getuid(), -1), os.Chmod(path, fi.Mode())); err != nil {
			t.Fatal(err)
		}
	}
	if err := tc.Apply(new(executor.Spec)); err != nil {
		t.Errorf("after everything was put back: %v", err)
	}
}

// What a seed must not be built from, or in.
func TestSeedFromUntrusted(t *testing.T) {
	good := tiny(t)
	d := dir(t)
	y := map[string]string{"go.mod": "module y.test/y\n", "y.go": "package y\n"}
	for name, mode := range map[string]fs.FileMode{"open": 0o777, "sticky": 0o1777, "private": 0o700} {
		path := write(t, filepath.Join(d, name), y)
		if err := os.Chmod(path, mode|fs.ModeSticky&(mode<<11)); err != nil {
			t.Fatal(err)
		}
	}
	writable := write(t, filepath.Join(d, "writable"), y)
	if err := os.Chmod(filepath.Join(writable, "y.go"), 0o646); err != nil {
		t.Fatal(err)
	}
	with := func(f func(*toolchain.GoSeed)) toolchain.GoSeed { s := good.Seed; f(&s); return s }
	tests := map[string]toolchain.GoSeed{
		"a file is writable for others":      with(func(s *toolchain.GoSeed) { s.Module = writable }),
		"the module is writable for others":  with(func(s *toolchain.GoSeed) { s.Module = filepath.Join(d, "open") }),
		"no module":                          with(func(s *toolchain.GoSeed) { s.Module = filepath.Join(d, "nowhere") }),
		"the directory is open to everybody": with(func(s *toolchain.GoSeed) { s.Dir = filepath.Join(d, "open") }),
		"everybody may add something":        with(func(s *toolchain.GoSeed) { s.Dir = filepath.Join(d, "sticky") }),
		"below an open directory":            with(func(s *toolchain.GoSeed) { s.Dir = filepath.Join(d, "open", "seeds") }),
		"does not load": with(func(s *toolchain.GoSeed) {
			s.Packages = []string{"./...", "x.test/x/missing"}
		}),
	}
	if os.Getuid() == 0 {
		foreign := write(t, filepath.Join(d, "foreign"), y)
		if err := os.Lchown(filepath.Join(foreign, "y.go"), 65534, 65534); err != nil {
			t.Fatal(err)
		}
		tests["a file of another user"] = with(func(s *toolchain.GoSeed) { s.Module = foreign })
		tests["runs could not reach it"] = with(func(s *toolchain.GoSeed) { s.Dir = filepath.Join(d, "private") })
	}
	for name, s := range tests {
		if _, err := toolchain.Seed(t.Context(), toolchain.GoConfig{Seed: s}); !errors.Is(err, toolchain.ErrSeed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list := seeds(t, good); len(list) != 0 {
		t.Errorf("there is %q", list)
	}
}

// Modules come from the host's cache as go.sum wants them; what is unpacked there is not used.
func TestSeedChecksModules(t *testing.T) {
	testenv.Need(t, "go")
	d := dir(t)
	files := sample(t)
	files["go.sum"] = strings.Replace(files["go.sum"], "h1:", "h1:A", 1)
	c := toolchain.GoConfig{Seed: toolchain.GoSeed{
		Dir: filepath.Join(d, "seeds"), Module: write(t, filepath.Join(d, "trusted"), files),
		BuildCache: goEnv(t, "GOCACHE"), ModCache: goEnv(t, "GOMODCACHE"),
	}}
	if _, err := toolchain.Seed(t.Context(), c); !errors.Is(err, toolchain.ErrSeed) {
		t.Errorf("%v", err)
	}
	if list := seeds(t, c); len(list) != 0 {
		t.Errorf("there is %q", list)
	}
}

// A build that ctx ends leaves nothing that would be taken for a seed.
func TestSeedCancelled(t *testing.T) {
	c := tiny(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(seeds(t, c)) == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := toolchain.Seed(ctx, c); !errors.Is(err, context.Canceled) || !errors.Is(err, toolchain.ErrSeed) {
		t.Errorf("%v", err)
	}
	if list := seeds(t, c); len(list) != 0 {
		t.Errorf("there is %q", list)
	}
}

// The host program is killed while it makes a seed. The next one waits for what it left running, and starts again.
func TestSeedKilled(t *testing.T) {
	c := tiny(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range strings.Split(*killedAt, ",") {
		killChild(t, self, c, file)
	}
	seed := seedOf(t, c)
	for _, left := range []string{"recorded", "tmp", "true", "completing"} {
		if _, err := os.Lstat(filepath.Join(seed, left)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left in the seed", left)
		}
	}
}

// killedAt names the parts of a seed at whose appearance the program that makes it is killed. Each takes a second.
var killedAt = flag.String("seed.killed", "recorded",
	"kill at these parts of a seed; the long version is mod,seedcache,recorded,cache/index")

func killChild(t *testing.T, self string, c toolchain.GoConfig, file string) {
	t.Helper()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childSeedDir+"="+c.Seed.Dir, "TOOLCHAIN_TEST_MODULE="+c.Seed.Module,
		"TOOLCHAIN_TEST_GOCACHE="+c.Seed.BuildCache)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		list, err := filepath.Glob(filepath.Join(c.Seed.Dir, "go-*", file))
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended before there was %s: %v", file, err)
		case <-time.After(time.Millisecond):
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
}
