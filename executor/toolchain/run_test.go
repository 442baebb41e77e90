// SPDX-License-Identifier: Apache-2.0

//go:build linux

package toolchain_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/toolchain"
	"github.com/evoseal/containment/internal/testenv"
)

func eachExecutor(t *testing.T, f func(t *testing.T, ex executor.Executor)) {
	eachExecutorWith(t, false, f)
}

// From here on a test is parallel: a run has one processor and most of its time is a compiler's. What depends on this
// process's environment, as the search for a toolchain does, comes before.
func eachExecutorWith(t *testing.T, chmod bool, f func(t *testing.T, ex executor.Executor)) {
	t.Parallel()
	for _, x := range executors {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			f(t, x.make(t, chmod))
		})
	}
}

// realModule is a copy of a module as it was published, with its tests.
func realModule(t *testing.T) string {
	t.Helper()
	_, path, _ := strings.Cut(sample(t)["go.mod"], "require ")
	source := filepath.Join(goEnv(t, "GOMODCACHE"), strings.Replace(strings.TrimSpace(path), " ", "@", 1))
	copied := filepath.Join(dir(t), "work")
	err := filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(source, path)
		to := filepath.Join(copied, rel)
		if d.IsDir() {
			return os.Mkdir(to, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

var compiled = regexp.MustCompile(`(?m)/compile .* -p (\S+) `)

// compiledInside returns the packages that a go command with -x has compiled.
func compiledInside(r *executor.Result) []string {
	var list []string
	for _, m := range compiled.FindAllSubmatch(r.Stderr.Bytes(), -1) {
		list = append(list, string(m[1]))
	}
	return list
}

// Go: the tests of a module as published, and of one that needs another module. Nothing is compiled but the modules
// themselves: the rest comes out of the seed.
func TestGo(t *testing.T) {
	tc := seeded(t)
	eachExecutorWith(t, true, func(t *testing.T, ex executor.Executor) {
		for name, workspace := range map[string]string{
			doublestar: realModule(t), "sample.test/m": write(t, dir(t), sample(t)),
		} {
			r := inside(t, ex, tc, workspace, "go", "test", "-x", "./...")
			passed(t, r)
			if !strings.Contains(r.Stdout.String(), "ok  \t"+name) {
				t.Errorf("%s", r.Stdout)
			}
			for _, p := range compiledInside(r) {
				if p != "main" && !strings.HasPrefix(p, name) {
					t.Errorf("%s: %s was compiled inside", name, p)
				}
			}
			if len(compiledInside(r)) == 0 {
				t.Errorf("%s: no compilation was seen at all", name)
			}
		}
	})
}

// What the seed does not have is compiled, and found again by the next go command of the same run.
func TestGoBeyondTheSeed(t *testing.T) {
	tc := seeded(t)
	files := sample(t)
	more := "import _ \"container/ring\"\nimport _ \"encoding/csv\"\nimport "
	files["m.go"] = strings.Replace(files["m.go"], "import ", more, 1)
	workspace := write(t, dir(t), files)
	eachExecutor(t, func(t *testing.T, ex executor.Executor) {
		r := inside(t, ex, tc, workspace, "sh", "-c", "go build -x . 2>first && go build -x . && cat first >&2")
		passed(t, r)
		if diff := cmp.Diff([]string{"container/ring", "sample.test/m"}, compiledInside(r)); diff != "" {
			t.Errorf("compiled inside in both builds (-want +got):\n%s", diff)
		}
	})
}

// Without a seed the standard library is compiled inside, and that is all there is.
func TestGoWithoutSeed(t *testing.T) {
	testenv.Need(t, "go")
	tc, err := toolchain.Go(t.Context(), toolchain.GoConfig{})
	if err != nil {
		t.Fatal(err)
	}
	workspace := write(t, dir(t), map[string]string{"go.mod": "module x.test/x\n\ngo 1.24\n", "x.go": "package x\n"})
	missing := write(t, dir(t), sample(t))
	eachExecutor(t, func(t *testing.T, ex executor.Executor) {
		passed(t, inside(t, ex, tc, workspace, "go", "build", "./..."))
		r := inside(t, ex, tc, missing, "go", "build", "./...")
		if r.Cause != executor.CauseExited || r.ExitCode == 0 || !strings.Contains(r.Stderr.String(), "GOPROXY=off") {
			t.Errorf("%v %d %s", r.Cause, r.ExitCode, r.Stderr)
		}
	})
}

func TestPython(t *testing.T) {
	testenv.Need(t, "python3")
	packages := write(t, dir(t), map[string]string{"outside.py": "answer = 42\n"})
	workspace := write(t, dir(t), map[string]string{"test_x.py": `import os, sys, unittest, outside
class X(unittest.TestCase):
    def test(self):
        self.assertEqual(outside.answer, 42)
        self.assertTrue(sys.dont_write_bytecode and sys.flags.no_user_site)
`})
	tc, err := toolchain.Python(t.Context(), toolchain.PythonConfig{Packages: []string{packages}})
	if err != nil {
		t.Fatal(err)
	}
	eachExecutor(t, func(t *testing.T, ex executor.Executor) {
		r := inside(t, ex, tc, workspace, "python3", "-m", "unittest")
		passed(t, r)
		if !strings.Contains(r.Stderr.String(), "Ran 1 test") {
			t.Errorf("%s", r.Stderr)
		}
		r = inside(t, ex, tc, workspace, "python3", "-c", "import platform; print(platform.python_version())")
		if got := strings.TrimSpace(r.Stdout.String()); got != tc.Version {
			t.Errorf("inside is %q, and the toolchain says %q", got, tc.Version)
		}
	})
}

// A virtual environment brings its packages and what it was made from.
func TestPythonEnvironment(t *testing.T) {
	testenv.Need(t, "python3")
	base, err := toolchain.Python(t.Context(), toolchain.PythonConfig{})
	if err != nil {
		t.Fatal(err)
	}
	// What python3 -m venv makes, but for pip, which not every host has.
	venv := filepath.Join(dir(t), "venv")
	minor := base.Version[:strings.LastIndex(base.Version, ".")]
	write(t, venv, map[string]string{
		"pyvenv.cfg": "home = " + filepath.Dir(base.Program) + "\ninclude-system-site-packages = false\n",
		"lib/python" + minor + "/site-packages/installed.py": "answer = 42\n",
		"bin/README": "",
	})
	if err := os.Symlink(base.Program, filepath.Join(venv, "bin", "python3")); err != nil {
		t.Fatal(err)
	}
	tc, err := toolchain.Python(t.Context(), toolchain.PythonConfig{Program: filepath.Join(venv, "bin", "python3")})
	if err != nil {
		t.Fatal(err)
	}
	eachExecutor(t, func(t *testing.T, ex executor.Executor) {
		r := inside(t, ex, tc, dir(t), "python3", "-c", "import installed, unittest; print(installed.answer)")
		passed(t, r)
		if r.Stdout.String() != "42\n" {
			t.Errorf("%s", r.Stdout)
		}
	})
}

func TestNode(t *testing.T) {
	testenv.Need(t, "node")
	tc, err := toolchain.Node(t.Context(), toolchain.NodeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	workspace := write(t, dir(t), map[string]string{"x.test.js": `
const test = require('node:test'), assert = require('node:assert');
test('version', () => assert.equal(process.version, '` + tc.Version + `'));
test('nothing is inherited', () => assert.equal(process.env.NODE_OPTIONS, undefined));
`})
	eachExecutor(t, func(t *testing.T, ex executor.Executor) {
		r := inside(t, ex, tc, workspace, "node", "--test")
		passed(t, r)
		if !strings.Contains(r.Stdout.String(), "pass 2") {
			t.Errorf("%s", r.Stdout)
		}
	})
}

// digest describes every entry below a directory: content, mode, time of change of the content.
func digest(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		var sum [sha256.Size]byte
		if fi.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum = sha256.Sum256(data)
		}
		all[path] = fmt.Sprintf("%v %x %v", fi.Mode(), sum, fi.ModTime())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// poison does everything to a seed that a variant could think of, and prints what succeeded.
const poison = `
import os, sys
seed = os.path.dirname(os.environ["GOCACHEPROG"].split()[0])
paths = [d for d, _, _ in os.walk(seed)] + [os.path.join(d, f) for d, _, fs in os.walk(seed) for f in fs]
assert len(paths) > 100, paths
paths = [p for p in paths if not p.endswith("-d")] + [p for p in paths if p.endswith("-d")][:20]
def attempt(name, f):
    try: f()
    except OSError: return
    print(name)
home = os.environ["HOME"]
evil = os.path.join(home, "evil")
with open(evil, "w") as f: f.write("evil")
for p in paths + [seed + ".lock", os.path.join(os.path.dirname(seed), "host", "cache")]:
    attempt("write " + p, lambda: os.close(os.open(p, os.O_WRONLY)))
    attempt("append " + p, lambda: os.close(os.open(p, os.O_RDWR | os.O_APPEND)))
    attempt("truncate " + p, lambda: os.truncate(p, 0))
    attempt("chmod " + p, lambda: os.chmod(p, 0o777))
    attempt("times " + p, lambda: os.utime(p, (1, 1)))
    attempt("unlink " + p, lambda: os.unlink(p))
    attempt("rmdir " + p, lambda: os.rmdir(p))
    attempt("move away " + p, lambda: os.rename(p, p + ".old"))
    attempt("replace " + p, lambda: os.rename(evil, p))
    attempt("create in " + p, lambda: os.close(os.open(p + "/new", os.O_CREAT | os.O_WRONLY)))
    attempt("link in " + p, lambda: os.symlink("/etc/passwd", p + "/link"))
    attempt("mkdir in " + p, lambda: os.mkdir(p + "/dir"))
# What is the run's own may be poisoned. Nobody will meet it.
own = os.path.join(os.environ["GOCACHE"], "own")
os.makedirs(own)
with open(os.path.join(seed, "cache", "index")) as f: lines = f.readlines()
for line in lines:
    action, output, size = line.split()
    with open(os.path.join(own, action + "-a"), "w") as f: f.write(output)
    with open(os.path.join(own, output + "-d"), "w") as f: f.write("evil")
`

// A variant that attacks the seed leaves it as it was, and the next run compiles nothing.
func TestPoison(t *testing.T) {
	testenv.Need(t, "python3")
	tc := seeded(t)
	before := digest(t, shared.config.Seed.Dir)
	workspace := write(t, dir(t), sample(t))
	attacks := write(t, dir(t), map[string]string{"poison.py": poison})
	eachExecutor(t, func(t *testing.T, ex executor.Executor) {
		r := inside(t, ex, tc, attacks, "python3", "poison.py")
		passed(t, r)
		if r.Stdout.Total != 0 {
			t.Errorf("the run could do this:\n%s", r.Stdout)
		}
		if diff := cmp.Diff(before, digest(t, shared.config.Seed.Dir)); diff != "" {
			t.Errorf("the seeds have changed:\n%s", diff)
		}
		r = inside(t, ex, tc, workspace, "go", "test", "-x", ".")
		passed(t, r)
		for _, p := range compiledInside(r) {
			if p != "main" && !strings.HasPrefix(p, "sample.test/m") {
				t.Errorf("%s was compiled inside", p)
			}
		}
	})
}
