// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/evoseal/containment/executor"
)

// artifactCases attack the way back: what a run hands out is read by the host, with the host's rights.
func artifactCases() []Case {
	return []Case{
		check("art-basic", "a declared file comes back as the run left it, and its description is true", 0, artBasic),
		check("art-failed-run", "reports of a run that failed are wanted most", 0, artFailedRun),
		check("art-none", "a pattern that matches nothing is told, and does not change the run's result", 0, artNone),
		check("art-modes", "set-id bits must not come back, the execute bit must", 0, artModes),
		attack("art-link", "a link in the last component hands the host's file out", 0, artEscape("link")),
		attack("art-linkdir", "a link in a middle component does the same, and is checked less often",
			0, artEscape("linkdir")),
		attack("art-hardlink", "a second link may be a name of another file", 0, artEscape("hardlink")),
		attack("art-race", "a file that becomes a link between check and use (CVE-2018-15664)", 0, artRace),
		attack("art-git", "hooks, filters and fsmonitor settings that come back run on the host later", 0, artGit),
		check("art-kind", "opening a FIFO waits for ever, and a device does things", 0, artKind),
		check("art-sparse", "a hole of 10 GiB costs nothing inside and everything outside", 0, artSparse),
		check("art-bytes", "caps count while copying", 0, artBytes),
		check("art-files", "a million small files fill an inode table", 0, artFiles),
		check("art-depth", "a deep tree is work without end", 0, artDepth),
	}
}

// take asks for everything below out.
func (s *scene) take(j job) (executor.Spec, string) {
	spec := s.spec("artifacts", j)
	spec.Artifacts, spec.ArtifactDir = []string{"out/**"}, filepath.Join(s.dir, "artifacts")
	return spec, spec.ArtifactDir
}

// paths lists what came back, sorted, since the order of artifacts is no promise.
func paths(res *executor.Result) []string {
	var list []string
	for _, a := range res.Artifacts {
		list = append(list, a.Path)
	}
	slices.Sort(list)
	return list
}

// refused reports whether a path is named among the refusals, with a reason: silence about a missing file is a fault.
func refused(res *executor.Result, path string) bool {
	return slices.ContainsFunc(res.Refused, func(r executor.Refusal) bool { return r.Path == path && r.Reason != "" })
}

// comeBack demands exactly these artifacts, and files that are as described.
func (s *scene) comeBack(res *executor.Result, dir string, want ...string) error {
	if got := paths(res); !slices.Equal(got, want) {
		return s.breach("the artifacts are %q, not %q; refused: %v", got, want, res.Refused)
	}
	for _, a := range res.Artifacts {
		file := filepath.Join(dir, a.Path)
		if size(file) != a.Size || fileSum(file) != a.SHA256 {
			return s.breach("%s has %d bytes and the digest %s, not %d and %s", file, size(file), fileSum(file), a.Size, a.SHA256)
		}
	}
	if extra := filesBelow(dir); len(extra) != len(want) {
		return s.breach("beside the artifacts there are other files: %q", extra)
	}
	return nil
}

// filesBelow lists what really lies in a directory, which is what counts, whatever the result says.
func filesBelow(dir string) []string {
	var files []string
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, p)
		}
		return nil
	})
	return files
}

// artBasic takes a file, an empty one and a deep one. The digest is compared with what the host knows the run wrote.
func artBasic(s *scene) error {
	text := randomHex(16)
	spec, dir := s.take(job{Name: "basic", Text: text})
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if err := s.comeBack(res, dir, "out/deep/er/report.txt", "out/empty", "out/report.txt"); err != nil {
		return err
	}
	if fileSum(filepath.Join(dir, "out/report.txt")) != textSum(text) {
		return s.breach("the artifact is not what the run wrote")
	}
	return s.mustOK(res)
}

// artFailedRun: exit 3 is an ordinary end, and its report the reason why the run was made.
func artFailedRun(s *scene) error {
	spec, dir := s.take(job{Name: "fail", Text: "x"})
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if res.Cause != executor.CauseExited || res.ExitCode != 3 {
		return s.breach("exit 3 became %s", describe(res))
	}
	return s.comeBack(res, dir, "out/report.txt")
}

// artNone asks for one file that is there and for one that is not.
func artNone(s *scene) error {
	spec, dir := s.take(job{Name: "basic", Text: "x"})
	spec.Artifacts = []string{"out/report.txt", "no/such/*.xml"}
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if !refused(res, "no/such/*.xml") {
		return s.breach("a pattern without a match is not reported: %v", res.Refused)
	}
	if err := s.comeBack(res, dir, "out/report.txt"); err != nil {
		return err
	}
	return s.mustOK(res)
}

// artModes: a set-id program in the caller's directory would be the run's foot in the door.
func artModes(s *scene) error {
	spec, dir := s.take(job{Name: "modes", Text: "x"})
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if err := s.comeBack(res, dir, "out/plain", "out/tool"); err != nil {
		return err
	}
	for _, a := range res.Artifacts {
		fi, err := os.Lstat(filepath.Join(dir, a.Path))
		if err != nil {
			return s.fault(err)
		}
		tool := a.Path == "out/tool"
		if fi.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeSticky) != 0 || fi.Mode()&0o100 != 0 != tool || a.Executable != tool {
			return s.breach("%s came back with mode %v, executable %v", a.Path, fi.Mode(), a.Executable)
		}
	}
	return nil
}
