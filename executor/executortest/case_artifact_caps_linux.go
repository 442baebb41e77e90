// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"slices"
	"strconv"
	"time"

	"github.com/evoseal/containment/executor"
)

// artKind declares the FIFO by name as well, so that leaving it out in silence is no way to pass.
func artKind(s *scene) error {
	spec, dir := s.take(job{Name: "kind", Text: "x"})
	spec.Artifacts = []string{"out/**", "out/fifo"}
	start := time.Now()
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if took := time.Since(start); took > 8*time.Second {
		return s.tooLate("a FIFO held the run up for %v", took)
	}
	if !refused(res, "out/fifo") {
		return s.breach("a FIFO that was declared is not reported: %v", res.Refused)
	}
	return s.comeBack(res, dir, "out/report.txt")
}

// artSparse: the cap counts the apparent size, and a small hole is an ordinary file.
func artSparse(s *scene) error {
	spec, dir := s.take(job{Name: "sparse", Text: "x"})
	spec.Limits.FileSize = 16 << 30
	start := time.Now()
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if took := time.Since(start); took > 8*time.Second {
		return s.tooLate("a hole of 10 GiB held the run up for %v", took)
	}
	if !refused(res, "out/hole") {
		return s.breach("a file over the cap is not reported: %v", res.Refused)
	}
	return s.comeBack(res, dir, "out/report.txt", "out/small-hole")
}

// artBytes has four files of which one fits; the sum is taken on the host.
func artBytes(s *scene) error {
	spec, dir := s.take(job{Name: "big", Text: "x"})
	spec.Limits.ArtifactBytes = 1 << 20
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	var total int64
	for _, file := range filesBelow(dir) {
		total += size(file)
	}
	if total > 1<<20 {
		return s.breach("%d bytes came back under a cap of %d", total, 1<<20)
	}
	return s.accounted(res, "big", 4)
}

// artFiles has four times as many files as may come back. Which of them do is the executor's affair.
func artFiles(s *scene) error {
	spec, dir := s.take(job{Name: "many", Text: "x"})
	spec.Limits.ArtifactFiles = 5
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if n := len(filesBelow(dir)); n > 5 || len(res.Artifacts) > 5 {
		return s.breach("%d files came back under a cap of 5", n)
	}
	if len(res.Artifacts) == 0 || len(res.Refused) == 0 {
		return s.breach("of 20 files %d came back and %d refusals say why the others did not", len(res.Artifacts), len(res.Refused))
	}
	return s.mustOK(res)
}

// accounted demands that each of n numbered files came back or was refused by name.
func (s *scene) accounted(res *executor.Result, stem string, n int) error {
	for i := range n {
		path := "out/" + stem + strconv.Itoa(i)
		if !slices.Contains(paths(res), path) && !refused(res, path) {
			return s.breach("%s neither came back nor was refused: %q, %v", path, paths(res), res.Refused)
		}
	}
	if len(res.Artifacts) == 0 {
		return s.breach("nothing came back, though one file is below the cap")
	}
	return s.mustOK(res)
}

// artDepth puts a file deeper than artifacts are searched for.
func artDepth(s *scene) error {
	spec, dir := s.take(job{Name: "depth", Text: "x"})
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	return s.comeBack(res, dir, "out/report.txt")
}
