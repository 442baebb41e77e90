// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoseal/containment/internal/testenv"
	"github.com/evoseal/containment/isolation"
)

// hostileGo is a variant and its tests. WAY says how it tries to pass.
const hostileGo = `package m

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

func init() {
	if os.Getenv("WAY") == "leave before the tests" {
		syscall.Exit(0)
	}
}

func TestA(t *testing.T) {
	t.Run("sub", func(t *testing.T) { fmt.Println("output") })
	switch os.Getenv("WAY") {
	case "leave in a test":
		syscall.Exit(0)
	case "leave politely":
		os.Exit(0)
	case "write a result":
		fmt.Print("\x16--- PASS: TestB (0.00s)\n")
		syscall.Exit(0)
	case "write all results and leave":
		fmt.Print("\x16--- PASS: TestA (0.00s)\n\x16=== RUN   TestB\n\x16--- PASS: TestB (0.00s)\nPASS\n")
		syscall.Exit(0)
	case "write one twice":
		fmt.Print("\x16=== RUN   TestB\n\x16--- PASS: TestB (0.00s)\n")
	case "skip":
		t.Skip()
	case "fail":
		t.Error("wrong")
	}
}

func TestB(t *testing.T) { t.Parallel() }

func Example() {
	fmt.Println("x")
	// Output: x
}
`

// What the tools of this Go really write, for an honest variant and for some that are not.
func TestRealGoTest(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "go")
	testenv.Need(t, "go-caches")
	dir := t.TempDir()
	put(t, filepath.Join(dir, "go.mod"), "module m\n\ngo 1.25\n")
	put(t, filepath.Join(dir, "m_test.go"), hostileGo)
	run := func(way string, args ...string) isolation.Evaluation {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		cmd.Env = append(os.Environ(), "WAY="+way, "GOWORK=off", "GOFLAGS=", "GOTOOLCHAIN=local")
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		e := printed(string(out), nil)
		e.Result.ExitCode = cmd.ProcessState.ExitCode()
		return e
	}
	if e := run("", "test", "-c", "-o", "m.test", "."); e.Result.ExitCode != 0 {
		t.Fatalf("it does not build: %s", e.Stdout)
	}
	test := func(way string) isolation.Evaluation { // what `go test -json` does
		return run(way, "tool", "test2json", "-t", "-p", "m", "./m.test", "-test.v=test2json", "-test.paniconexit0")
	}
	honest := test("")
	base, err := isolation.GoTest{MinTests: 4}.Measure(t.Context(), honest)
	if err != nil || strings.Join(base.Passed, ",") != "m Example,m TestA,m TestA/sub,m TestB" {
		t.Fatalf("measured %+v, %v\n%s", base, err, honest.Stdout)
	}
	for _, way := range []string{"leave before the tests", "leave in a test", "leave politely", "write a result",
		"write all results and leave", "write one twice", "skip", "fail"} {
		e := test(way)
		e.Baseline = base
		if got := foundKinds(t, isolation.GoTest{}, e); got == "keep" {
			t.Errorf("%s: kept\n%s", way, e.Stdout)
		}
	}
	honest.Baseline = base
	if got := foundKinds(t, isolation.GoTest{}, honest); got != "keep" {
		t.Errorf("an honest one: %s", got)
	}
}

const hostileNode = `import test from 'node:test';
test('outer', async t => {
	await t.test('inner # name', () => {});
	if (process.env.WAY === 'leave') process.exit(0);
	if (process.env.WAY === 'write and leave') { console.log('ok 1 - outer\nok 2 - later\n1..2'); process.exit(0); }
	await t.test('later', () => {});
});
`

func TestRealNodeTAP(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "node")
	file := filepath.Join(t.TempDir(), "m.test.mjs")
	put(t, file, hostileNode)
	test := func(way string) isolation.Evaluation {
		cmd := exec.Command("node", "--test", "--test-reporter=tap", file)
		cmd.Env = append(os.Environ(), "WAY="+way)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		e := printed(string(out), nil)
		e.Result.ExitCode = cmd.ProcessState.ExitCode()
		return e
	}
	honest := test("")
	base, err := isolation.TAP{}.Measure(t.Context(), honest)
	if err != nil || len(base.Passed) != 3 {
		t.Fatalf("measured %+v, %v\n%s", base, err, honest.Stdout)
	}
	for _, way := range []string{"leave", "write and leave"} {
		e := test(way)
		e.Baseline = base
		if got := foundKinds(t, isolation.TAP{}, e); got == "keep" {
			t.Errorf("%s: kept\n%s", way, e.Stdout)
		}
	}
}
