// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
)

// failing returns the packages and the tests that failed on the accepted tree, without subtests.
func (p *project) failing() (packages, tests []string) {
	for line := range strings.Lines(p.report) {
		var event struct{ Action, Package, Test string }
		if json.Unmarshal([]byte(line), &event) != nil || event.Action != "fail" {
			continue
		}
		if !slices.Contains(packages, event.Package) && event.Package != "" {
			packages = append(packages, event.Package)
		}
		if test, _, _ := strings.Cut(event.Test, "/"); test != "" && !slices.Contains(tests, test) {
			tests = append(tests, test)
		}
	}
	return packages, tests
}

// spectrumProgram runs tests one by one and notes what each executes.
//
//go:embed spectrum/main.go
var spectrumProgram []byte

// What it leaves, and where it stands in the copy of the tree.
const (
	spectrumOut = "containment-spectrum.out"
	spectrumDir = "containment-spectrum"
)

// executions is what each test of the packages that failed executes, as profiles of package repair.
type executions struct {
	failing, passing [][]byte
	background       []byte
}

// executions runs the tests of the accepted tree once more, each by itself: what failing ones execute and passing ones
// do not is where the mistake is likely to be.
func (p *project) executions(ctx context.Context, l layout, run sandbox) (found executions, err error) {
	packages, tests := p.failing()
	if len(packages) == 0 {
		return found, nil
	}
	dir, err := os.MkdirTemp(l.dir, "spectrum-")
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	tree, out := filepath.Join(dir, "tree"), filepath.Join(dir, "out")
	if err := os.CopyFS(tree, os.DirFS(l.tree())); err != nil {
		return found, err
	}
	if err := os.Mkdir(filepath.Join(tree, spectrumDir), 0o755); err != nil {
		return found, err
	}
	if err := os.WriteFile(filepath.Join(tree, spectrumDir, "main.go"), spectrumProgram, 0o644); err != nil {
		return found, err
	}
	seconds := strconv.Itoa(int(p.wall.Seconds() * 3 / 4)) // then it leaves what it has
	result, err := run(ctx, tree, executor.Spec{
		Args: append([]string{"go", "run", "./" + spectrumDir, spectrumOut, seconds, strings.Join(tests, ",")},
			packages...),
		Artifacts: []string{spectrumOut}, ArtifactDir: out,
	})
	if err != nil {
		return found, err
	}
	if !result.OK() {
		return found, fmt.Errorf("%v: %.300q", result.Cause, result.Stderr.String())
	}
	data, err := os.ReadFile(filepath.Join(out, spectrumOut))
	if err != nil {
		return found, err
	}
	return split(data), nil
}

// split takes the profiles of the tests apart.
func split(data []byte) (found executions) {
	for part := range bytes.SplitSeq(data, []byte("\ntest ")) {
		head, profile, _ := bytes.Cut(bytes.TrimPrefix(part, []byte("test ")), []byte("\n"))
		switch name, verdict, _ := strings.Cut(string(head), " "); {
		case name == "-":
			found.background = append(found.background, profile...)
		case verdict == "ok":
			found.passing = append(found.passing, profile)
		case verdict == "failed":
			found.failing = append(found.failing, profile)
		}
	}
	return found
}

// locator is a generator that wants to know what tests execute.
type locator interface {
	Cover(failing, passing [][]byte, background []byte)
}

// locate tells the generator, if it wants to know.
func (p *loop) locate(ctx context.Context) error {
	g, wants := p.gen.(locator)
	j, ok := p.job.(*project)
	if !wants || !ok || !j.isGoTest() || j.passes {
		return nil
	}
	p.term.Status(func(d time.Duration) string {
		return fmt.Sprintf("looking what each test executes · %v", d.Round(time.Second))
	})
	defer p.term.Status(nil)
	found, err := j.executions(ctx, p.l, p.sandbox())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil: // then the output of the tests has to do
		p.term.Println("what the tests execute is not known: " + err.Error())
	case len(found.failing) > 0:
		p.term.Println(fmt.Sprintf("located   by what %d failing and %d passing tests execute", len(found.failing),
			len(found.passing)))
		g.Cover(found.failing, found.passing, found.background)
	}
	return nil
}
