// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
)

// specCases attack the door: what is wrong, or cannot be kept, must not start.
func specCases() []Case {
	return []Case{
		check("require", "a missing capability must refuse the run, never weaken it", 0, requireEach),
		check("require-undefined", "a bit that nobody defined is a mistake of the caller, not a promise",
			0, requireUndefined),
		check("readonly-needs", "rules that cannot be kept must refuse the run", 0, readOnlyNeeds),
		check("spec-faults", "one error names every mistake, so that nobody repairs them one by one", 0, specFaults),
		check("spec-single", "each mistake alone is enough to start nothing", 0, specSingle),
		check("mount-missing", "a mount without a source is an error of the set-up that names it", 0, mountMissing),
		check("mount-readable", "a declared mount is what lets a toolchain in", 0, mountReadable),
	}
}

// requireEach asks for every capability that is not promised, alone and all together.
func requireEach(s *scene) error {
	promised := s.ex.Capabilities()
	missing := promised.Missing(executor.AllCapabilities)
	for one := range missing.All() {
		if err := s.mustRefuse(s.spec("witness", job{}), one); err != nil {
			return err
		}
	}
	if missing != 0 {
		return s.mustRefuse(s.spec("witness", job{}), executor.AllCapabilities)
	}
	// Everything is promised: then requiring everything must be no obstacle.
	spec := s.plainSpec("exit", "0")
	spec.Require = promised
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	return s.mustOK(res)
}

// requireUndefined asks for the first bit that has no meaning yet; the answer must not change when it gets one.
func requireUndefined(s *scene) error {
	spec := s.spec("witness", job{})
	spec.Require = executor.AllCapabilities + 1
	err, verdict := s.mustNotStart(spec)
	if verdict == nil && !errors.Is(err, executor.ErrInvalidSpec) {
		return s.breach("the error does not match ErrInvalidSpec: %v", err)
	}
	return verdict
}

// readOnlyNeeds: a list of rules is a requirement, even if nobody calls it one.
func readOnlyNeeds(s *scene) error {
	spec := s.spec("reach", job{})
	spec.ReadOnly = []string{"rules", "not/there"}
	if s.ex.Capabilities().Has(executor.ProtectedReadOnly) {
		res, err := s.reach(spec)
		if err != nil {
			return err
		}
		return s.mustOK(res)
	}
	return s.mustRefuse(spec, 0)
}

// specFaults makes one mistake in each field at once.
func specFaults(s *scene) error {
	spec := executor.Spec{
		Workspace:   filepath.Join(s.dir, "nowhere"),
		Dir:         "../up",
		Env:         map[string]string{"A=B": "x", "": "x", "NUL": "a\x00b"},
		Mounts:      []executor.Mount{{Source: "relative"}},
		Overlay:     "relative",
		ReadOnly:    []string{"../a"},
		Hidden:      []string{"ok", "x/../../y"},
		Artifacts:   []string{"../escape"},
		ArtifactDir: filepath.Join(s.dir, "artifacts"),
		Limits:      executor.Limits{Wall: -time.Second, Memory: -1, Processes: -1, CPUs: math.NaN()},
		Label:       "line\nbreak",
	}
	err, verdict := s.mustNotStart(spec)
	if verdict != nil {
		return verdict
	}
	var faults *executor.SpecError
	if !errors.As(err, &faults) || !errors.Is(err, executor.ErrInvalidSpec) {
		return s.breach("the error is not a SpecError: %v", err)
	}
	for _, field := range []string{
		"Args", "Workspace", "Dir", `Env["A=B"]`, `Env[""]`, `Env["NUL"]`, "Mounts[0]", "Overlay", "ReadOnly[0]", "Hidden[1]",
		"Artifacts[0]", "Limits.Wall", "Limits.Memory", "Limits.Processes", "Limits.CPUs", "Label",
	} {
		if !names(faults, field) {
			return s.breach("the error does not name %s: %v", field, err)
		}
	}
	return nil
}

// names reports whether a fault begins with a field's name; the rest is the message.
func names(err *executor.SpecError, field string) bool {
	for _, f := range err.Faults {
		if strings.HasPrefix(f.Field, field) {
			return true
		}
	}
	return false
}

// specSingle makes one mistake in a specification that would run otherwise.
func specSingle(s *scene) error {
	mistakes := map[string]func(*executor.Spec){
		"Dir":           func(p *executor.Spec) { p.Dir = "a/../../b" },
		"Env":           func(p *executor.Spec) { p.Env = map[string]string{"A=B": ""} },
		"Hidden":        func(p *executor.Spec) { p.Hidden = []string{"/etc"} },
		"Hidden[0]":     func(p *executor.Spec) { p.Hidden = []string{"a\x00b"} },
		"Artifacts":     func(p *executor.Spec) { p.Artifacts, p.ArtifactDir = []string{"{a,../b}"}, s.dir+"/out" },
		"ArtifactDir":   func(p *executor.Spec) { p.Artifacts, p.ArtifactDir = []string{"a"}, s.ws+"/out" },
		"Limits.Output": func(p *executor.Spec) { p.Limits.Output = -1 },
		"Limits.Memory": func(p *executor.Spec) { p.Limits.Memory = 1 },
	}
	for field, spoil := range mistakes {
		spec := s.spec("witness", job{})
		spoil(&spec)
		err, verdict := s.mustNotStart(spec)
		if verdict != nil {
			return fmt.Errorf("%w (mistake in %s)", verdict, field)
		}
		if !errors.Is(err, executor.ErrInvalidSpec) || !strings.Contains(err.Error(), strings.TrimSuffix(field, "[0]")) {
			return s.breach("a mistake in %s gives: %v", field, err)
		}
	}
	return nil
}

// mountMissing: one missing source must not end as a run with an empty directory.
func mountMissing(s *scene) error {
	spec := s.spec("witness", job{})
	missing := filepath.Join(s.dir, "no-such-source")
	spec.Mounts = []executor.Mount{{Source: missing}}
	err, verdict := s.mustNotStart(spec)
	if verdict != nil {
		return verdict
	}
	var setup *executor.SetupError
	if !errors.As(err, &setup) || !strings.Contains(err.Error(), missing) {
		return s.breach("the error is not a SetupError that names %s: %v", missing, err)
	}
	return nil
}

// mountReadable has the source as its target, which every tier can do.
func mountReadable(s *scene) error {
	text := randomHex(16)
	path, err := s.plant("mount/tool", text, 0o644)
	if err != nil {
		return s.fault(err)
	}
	spec := s.spec("read", job{Paths: []string{path}})
	spec.Mounts = []executor.Mount{{Source: filepath.Dir(path)}}
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	return s.mustSay(res, "read", text)
}
