// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/internal/testenv"
)

// makeModule writes a module that has nothing to do with ours and returns its directory.
func makeModule(t *testing.T, test string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module " + project + "\n\ngo 1.26.5\n",
		"m_test.go": "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n" + test,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func oneModule(t *testing.T, dir string) []module {
	t.Helper()
	packages, err := listPackages(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return []module{{dir, packages}}
}

func TestModuleIsTested(t *testing.T) {
	testenv.Need(t, "go-caches")
	t.Setenv("GOWORK", "off")
	for name, c := range map[string]struct {
		test           string
		passed, failed int
	}{
		"pass":     {`func TestA(t *testing.T) { if os.Getenv("CONTAINMENT_REQUIRE") != "all" { t.Fatal() } }`, 1, 0},
		"fail":     {`func TestA(t *testing.T) { t.Fatal(os.Args) }`, 0, 2}, // the second: nothing passed
		"exit":     {`func TestA(t *testing.T) { os.Exit(3) }`, 0, 2},
		"compile":  {`func TestA(t *testing.T) { nonsense }`, 0, 3}, // build, package, nothing passed
		"no tests": {`var _, _ = os.Args, testing.Short`, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			only := pass{name: "only", modules: oneModule(t, makeModule(t, c.test)), part: again}
			tallies, err := runPasses(t.Context(), []pass{only}, &out)
			if err != nil {
				t.Fatal(err)
			}
			if v := judge(tallies, true); v.passed != c.passed || v.failed != c.failed {
				t.Errorf("%d passed, %d failed, want %d and %d: %q\n%s",
					v.passed, v.failed, c.passed, c.failed, v.complaints, out.String())
			}
		})
	}
}

// TestOrdinaryPass runs a module in the last pass's arrangement and lets the test say what it sees.
func TestOrdinaryPass(t *testing.T) {
	testenv.Need(t, "root")
	testenv.Need(t, "setpriv")
	t.Setenv("GOWORK", "off")
	t.Chdir("../..")
	dir := makeModule(t, `func TestA(t *testing.T) {
	if os.Getuid() != 65534 || os.Getgid() != 65534 { t.Error(os.Getuid(), os.Getgid()) }
	if groups, err := os.Getgroups(); err != nil || len(groups) != 0 { t.Error(groups, err) }
	if err := os.WriteFile(os.Getenv("HOME")+"/x", nil, 0o600); err != nil { t.Error(err) }
	if err := os.WriteFile(t.TempDir()+"/x", nil, 0o600); err != nil { t.Error(err) }
	self, err := os.Executable()
	if err != nil { t.Fatal(err) }
	if f, err := os.Open(self); err != nil { t.Error(err) } else { f.Close() }
	if _, err := os.ReadFile("m_test.go"); err != nil { t.Error(err) }
}`)
	p, remove, err := prepareOrdinary(t.Context(), oneModule(t, dir))
	defer func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	tallies, err := runPasses(t.Context(), []pass{p}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if v := judge(tallies, true); v.passed != 1 || v.failed != 0 {
		t.Errorf("%d passed, %d failed: %q", v.passed, v.failed, v.complaints)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	if got, want := quote([]string{"/a b/c", "1"}), `'/a b/c' '1'`; got != want {
		t.Errorf("quote = %s, want %s", got, want)
	}
}
