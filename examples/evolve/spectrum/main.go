// SPDX-License-Identifier: Apache-2.0

// Spectrum runs the tests of packages one by one and writes down what each of them executes. It is compiled and run in
// the sandbox, in a copy of the tree that is to be mended, and imports nothing that testing does not.
//
//	spectrum OUT SECONDS TEST,TEST,… PACKAGE…
//
// Each test begins with a line "test NAME ok" or "test NAME failed", and what it has executed follows as lines of its
// profile. The named tests come first; it ends after so many seconds with what it has until then. The test "-" is none.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	seconds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fail(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	var out bytes.Buffer
	for _, name := range os.Args[4:] {
		if err := tests(ctx, &out, name, strings.Split(os.Args[3], ",")); err != nil && ctx.Err() == nil {
			fail(err)
		}
	}
	if err := os.WriteFile(os.Args[1], out.Bytes(), 0o644); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "spectrum:", err)
	os.Exit(1)
}

// tests compiles one package with counters and runs its tests.
func tests(ctx context.Context, out *bytes.Buffer, name string, first []string) error {
	tmp, err := os.MkdirTemp("", "spectrum-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	program, profile := filepath.Join(tmp, "p.test"), filepath.Join(tmp, "profile")
	dir, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", name).Output()
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-covermode=count", "-coverpkg=./...", "-o", program, name)
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	start := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = strings.TrimSpace(string(dir))
		return cmd
	}
	listed, err := start("-test.list=^(Test|Example|Fuzz)").Output()
	if err != nil {
		return err
	}
	all := append([]string{"-"}, first...)
	for _, test := range strings.Fields(string(listed)) {
		if !contains(first, test) {
			all = append(all, test)
		}
	}
	for _, test := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		os.Remove(profile)
		verdict := "ok"
		if err := start("-test.run=^"+test+"$", "-test.timeout=10s", "-test.coverprofile="+profile).Run(); err != nil {
			verdict = "failed"
		}
		data, err := os.ReadFile(profile)
		if err != nil || ctx.Err() != nil {
			continue // a test that panics leaves none
		}
		fmt.Fprintf(out, "test %s %s\n", test, verdict)
		for _, line := range strings.Split(string(data), "\n") {
			if line != "" && !strings.HasPrefix(line, "mode: ") && !strings.HasSuffix(line, " 0") {
				out.WriteString(line + "\n")
			}
		}
	}
	return nil
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}
