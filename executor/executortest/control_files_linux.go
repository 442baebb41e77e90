// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evoseal/containment/executor"
)

// copyNaively copies the workspace without what the run must not see. Special files are an error even here: opening a
// FIFO would wait for ever.
func copyNaively(spec executor.Spec, to string) error {
	return filepath.WalkDir(spec.Workspace, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(spec.Workspace, p)
		if hiddenByRule(spec, rel) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		return copyEntry(p, filepath.Join(to, rel), d)
	})
}

// overlayNaively lays the overlay over the copy; what is in the way goes first.
func (c control) overlayNaively(spec executor.Spec, to string) error {
	if spec.Overlay == "" {
		return nil
	}
	return filepath.WalkDir(spec.Overlay, func(p string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(spec.Overlay, p)
		switch {
		case err != nil:
			return err
		case rel == "." || !c.late && hiddenByRule(spec, rel) && !d.IsDir():
			return nil
		case !c.late && hiddenByRule(spec, rel):
			return filepath.SkipDir
		}
		at := filepath.Join(to, rel)
		if c.followed {
			return overlayThroughLinks(p, at)
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return fmt.Errorf("%s: no regular file", p)
		}
		if fi, err := os.Lstat(at); err == nil && (!d.IsDir() || !fi.IsDir()) {
			if err := os.RemoveAll(at); err != nil {
				return err
			}
		}
		return copyEntry(p, at, d)
	})
}

// overlayThroughLinks is the mistake of cp without -P: names are taken for what they lead to.
func overlayThroughLinks(from, to string) error {
	fi, err := os.Stat(from)
	if err != nil || !fi.Mode().IsRegular() {
		_ = os.Mkdir(to, 0o755)
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// hiddenByRule is the plain reading of Hidden: base names by default, paths from the specification.
func hiddenByRule(spec executor.Spec, rel string) bool {
	clean := func(p string) bool { return filepath.Clean(p) == rel }
	return slices.Contains(executor.DefaultHidden(), filepath.Base(rel)) || slices.ContainsFunc(spec.Hidden, clean)
}

// copyEntry copies one entry with its mode, links as links.
func copyEntry(from, to string, d os.DirEntry) error {
	fi, err := d.Info()
	if err != nil {
		return err
	}
	switch fi.Mode().Type() {
	case os.ModeDir:
		return os.MkdirAll(to, fi.Mode().Perm()|0o700)
	case os.ModeSymlink:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case 0:
		return copyFile(from, to, fi.Mode().Perm()|fi.Mode()&os.ModeSetuid)
	}
	return fmt.Errorf("%s: special file", from)
}

// extractNaively hands artifacts back the way scripts do: by name, through whatever link lies there. Only what would hang
// the suite is left out.
func extractNaively(res *executor.Result, spec executor.Spec, ws string) {
	for _, pattern := range spec.Artifacts {
		root := filepath.Join(ws, strings.TrimSuffix(pattern, "/**"))
		_ = filepath.Walk(root, func(p string, fi os.FileInfo, err error) error {
			if err != nil {
				return nil
			}
			if target, err := os.Stat(p); err == nil && target.IsDir() && !fi.IsDir() {
				takeDirNaively(res, spec, ws, p)
			}
			takeNaively(res, spec, ws, p)
			return nil
		})
	}
}

// takeDirNaively follows a linked directory, one level deep.
func takeDirNaively(res *executor.Result, spec executor.Spec, ws, dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		takeNaively(res, spec, ws, filepath.Join(dir, e.Name()))
	}
}

// takeNaively copies one file by name, which is the mistake.
func takeNaively(res *executor.Result, spec executor.Spec, ws, p string) {
	fi, err := os.Stat(p)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > 1<<28 {
		return
	}
	rel, _ := filepath.Rel(ws, p)
	to := filepath.Join(spec.ArtifactDir, rel)
	if os.MkdirAll(filepath.Dir(to), 0o755) != nil || copyFile(p, to, fi.Mode()) != nil {
		return
	}
	res.Artifacts = append(res.Artifacts, executor.Artifact{
		Path: filepath.ToSlash(rel), Size: fi.Size(), SHA256: fileSum(to), Executable: fi.Mode()&0o100 != 0,
	})
}

// fileSum returns the digest of a file, or "" if it cannot be read.
func fileSum(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// textSum is the digest that fileSum would give for this text.
func textSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
