// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/evoseal/containment/executor"
)

// protectedCases attack one read-only file in every way that replaces what its name shows. Each way is a case, because
// each is held by another rule of the kernel.
func protectedCases() []Case {
	ways := []struct{ how, why string }{
		{"write", "the simplest attack on a test file"},
		{"append", "opening for append is another permission check than for writing"},
		{"truncate", "truncation changes a file without opening it, and old Landlock does not see it"},
		{"chmod", "the owner of a file changes its mode back: chmod protects nothing"},
		{"rename", "whoever may write the directory puts another file under the name"},
		{"unlink", "whoever may write the directory removes the file and makes a new one"},
		{"link", "a second name for the file may have no rule"},
		{"symlink", "a write through a link reaches the same file under another name"},
		{"parent", "a directory above the file can be moved away with it"},
		{"descriptor", "a descriptor for reading can be opened again through /proc"},
	}
	var cases []Case
	for _, w := range ways {
		cases = append(cases, attack("protected-"+w.how, w.why, executor.ProtectedReadOnly, protectedAgainst(w.how)))
	}
	return append(cases, check("protected-others", "a rule for one file must leave its neighbours to the run",
		executor.ProtectedReadOnly, protectedOthers))
}

// protectedAgainst takes the verdict from the artifact, which is what stood under the name when the run was over. Where
// the executor hands none back, because the file has a second link, what the payload saw is against it all the same.
func protectedAgainst(how string) probe {
	return func(s *scene) error {
		const path = "tests/golden/expected.txt"
		text, forged := randomHex(16), randomHex(16)
		if _, err := s.plant("ws/"+path, text, 0o644); err != nil {
			return s.fault(err)
		}
		spec := s.spec("protected", job{Name: how, Paths: []string{path}, Text: forged})
		spec.ReadOnly = []string{path}
		spec.Artifacts, spec.ArtifactDir = []string{path}, filepath.Join(s.dir, "artifacts")
		res, err := s.reach(spec)
		if err != nil {
			return err
		}
		seen := answers(res.Stdout.Bytes(), "sees")
		if !slices.Equal(seen, []string{text}) {
			return s.breach("after %s the run sees %.100q instead of the protected text (attack: %q)", how, seen,
				answers(res.Stdout.Bytes(), "attack"))
		}
		if got, err := os.ReadFile(filepath.Join(spec.ArtifactDir, path)); err == nil && string(got) != text {
			return s.breach("after %s the artifact is %.100q", how, got)
		}
		return nil
	}
}

// protectedOthers: siblings, the directory of the file and new names stay writable.
func protectedOthers(s *scene) error {
	for _, rel := range []string{"ws/tests/kept.txt", "ws/tests/free.txt"} {
		if _, err := s.plant(rel, "x", 0o644); err != nil {
			return s.fault(err)
		}
	}
	spec := s.spec("write", job{Paths: []string{"tests/free.txt", "tests/new.txt", "top.txt"}, Text: "y"})
	spec.ReadOnly = []string{"tests/kept.txt", "not/there"}
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	return s.mustSay(res, "write", "ok", "ok", "ok")
}
