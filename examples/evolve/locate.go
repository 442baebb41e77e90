// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
)

// maxLocated is how many of the failing tests are run once more, each by itself.
const maxLocated = 6

// failing returns the tests that failed on the accepted tree, "package test", without subtests.
func (p *project) failing() (all []string) {
	for line := range strings.Lines(p.report) {
		var event struct{ Action, Package, Test string }
		if json.Unmarshal([]byte(line), &event) != nil || event.Action != "fail" || event.Test == "" {
			continue
		}
		test, _, _ := strings.Cut(event.Test, "/")
		if name := event.Package + " " + test; !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

const profileName = "containment-cover.out"

// coverage runs failing tests of the accepted tree once more, one at a time, and returns what each of them executes: where
// they all have been is where the mistake is likely to be. A test that leaves no profile, because it panics, says nothing.
// The first profile is of no test at all.
func (p *project) coverage(ctx context.Context, l layout, run sandbox) (profiles [][]byte, err error) {
	dir, err := os.MkdirTemp(l.dir, "cover-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	tests := p.failing()
	tests = tests[:min(len(tests), maxLocated)]
	if len(tests) == 0 {
		return nil, nil
	}
	importPath, _, _ := strings.Cut(tests[0], " ")
	for i, name := range slices.Insert(tests, 0, importPath+" ") {
		importPath, test, _ := strings.Cut(name, " ")
		out := filepath.Join(dir, fmt.Sprint(i))
		result, err := run(ctx, l.tree(), executor.Spec{
			Args: []string{"go", "test", "-run", "^" + regexp.QuoteMeta(test) + "$", "-covermode=count", "-coverpkg=./...",
				"-coverprofile=" + profileName, importPath},
			Artifacts: []string{profileName}, ArtifactDir: out,
		})
		if err != nil {
			return nil, err
		}
		var profile []byte
		if len(result.Artifacts) == 1 {
			if profile, err = os.ReadFile(filepath.Join(out, profileName)); err != nil {
				return nil, err
			}
		}
		profiles = append(profiles, profile)
	}
	return profiles, nil
}

// locator is a generator that wants to know what failing tests execute.
type locator interface {
	Cover(profiles [][]byte, background []byte)
}

// locate tells the generator, if it wants to know.
func (p *loop) locate(ctx context.Context) error {
	g, wants := p.gen.(locator)
	j, ok := p.job.(*project)
	if !wants || !ok || !j.isGoTest() || j.passes {
		return nil
	}
	p.term.Status(func(d time.Duration) string {
		return fmt.Sprintf("looking what the failing tests execute · %v", d.Round(time.Second))
	})
	defer p.term.Status(nil)
	profiles, err := j.coverage(ctx, p.l, p.sandbox())
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil: // then the output of the tests has to do
		p.term.Println("what the failing tests execute is not known: " + err.Error())
	case len(profiles) > 0:
		g.Cover(profiles[1:], profiles[0])
	}
	return nil
}
