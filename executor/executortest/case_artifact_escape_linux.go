// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
)

// artEscape plants a name in the run that leads to a secret of the host, and looks for the secret in what comes back.
func artEscape(how string) probe {
	return func(s *scene) error {
		secret := randomHex(16)
		path, err := s.plant("secrets/key", secret, 0o644)
		if err != nil {
			return s.fault(err)
		}
		spec, dir := s.take(job{Name: how, Text: "x", Paths: []string{path}})
		res, err := s.reach(spec)
		if err != nil {
			return err
		}
		if err := s.mustNotHold(dir, secret); err != nil {
			return err
		}
		if how == "hardlink" { // a link to a file of the run itself is refused as well: nobody can tell them apart
			if got := paths(res); slices.Contains(got, "out/second") || slices.Contains(got, "out/first") {
				return s.breach("files with two links came back: %q", got)
			}
		}
		if !slices.Contains(paths(res), "out/report.txt") {
			return s.breach("the honest artifact beside the link did not come back: %q, refused %v", paths(res), res.Refused)
		}
		return s.mustOK(res)
	}
}

// mustNotHold looks for a secret in every file that came back, and for anything that is no regular file.
func (s *scene) mustNotHold(dir, secret string) error {
	for _, file := range filesBelow(dir) {
		fi, err := os.Lstat(file)
		if err != nil || !fi.Mode().IsRegular() {
			return s.breach("%s came back and is no regular file", file)
		}
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), secret) {
			return s.breach("a file of the host came back as %s", file)
		}
	}
	return nil
}

// artRace swaps files, links and directories under the same names until it is killed.
func artRace(s *scene) error {
	secret := randomHex(16)
	path, err := s.plant("secrets/report.txt", secret, 0o644)
	if err != nil {
		return s.fault(err)
	}
	j := job{Name: "race", Text: "x", Paths: []string{path}}
	spec, dir := s.take(j)
	spec.Limits.Wall = 400 * time.Millisecond
	for range 2 {
		spec.Stdin = bytes.NewReader(s.jobLine(j))
		res, err := s.reachInTime(spec)
		if err != nil {
			return err
		}
		if err := s.mustNotHold(dir, secret); err != nil {
			return err
		}
		if err := s.mustEnd(res, executor.CauseWallTimeout); err != nil {
			return err
		}
	}
	return nil
}

// artGit asks for .git by name, too: asking must not help.
func artGit(s *scene) error {
	spec, dir := s.take(job{Name: "git", Text: "x"})
	spec.Artifacts = []string{"out/**", ".git/**", ".git"}
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	for _, file := range filesBelow(dir) {
		if rel, _ := filepath.Rel(dir, file); slices.Contains(strings.Split(rel, "/"), ".git") {
			return s.breach("%s came back", rel)
		}
	}
	return s.comeBack(res, dir, "out/report.txt")
}
