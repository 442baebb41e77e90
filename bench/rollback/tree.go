// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// goSources names what every host with Go has: thousands of real source files.
func goSources(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	root, cache, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return []string{cache, filepath.Join(root, "src")}, nil
}

// makeTree copies n regular files. Where there are fewer they are copied again, each with a last line of its own, so
// that no two are alike. It returns the sum of the sizes.
func makeTree(dir string, roots []string, n int) (sum int64, err error) {
	files, err := listFiles(roots)
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		return 0, fmt.Errorf("no files below %q", roots)
	}
	for i := range n {
		again := i / len(files)
		f := files[i%len(files)]
		if n < len(files) { // from all over, not the first in the alphabet
			f = files[i*len(files)/n]
		}
		data, err := os.ReadFile(filepath.Join(f.root, f.rel))
		if err != nil {
			return sum, err
		}
		if again > 0 {
			data = fmt.Appendf(data, "\n// copy %d\n", again)
		}
		to := filepath.Join(dir, fmt.Sprint("copy", again), f.rel)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o644)); err != nil {
			return sum, err
		}
		sum += int64(len(data))
	}
	return sum, nil
}

type sourceFile struct{ root, rel string }

// listFiles lists what a shadow repository takes as it is.
func listFiles(roots []string) (files []sourceFile, err error) {
	const most = 4 << 20 // a few archives would outweigh all source
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "cache" && filepath.Dir(path) == root || strings.HasPrefix(d.Name(), ".git")) {
				return fs.SkipDir
			}
			info, err := d.Info()
			if err != nil || !d.Type().IsRegular() || info.Size() > most || strings.HasPrefix(d.Name(), ".git") {
				return err
			}
			rel, err := filepath.Rel(root, path)
			files = append(files, sourceFile{root, rel})
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return files, nil
}

// regular lists the files of a tree, in a fixed order.
func regular(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

// edit appends a line to count files, spread over the tree.
func edit(paths []string, count, salt int) error {
	for i := range count {
		path := paths[(i*len(paths)/count+salt)%len(paths)]
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(f, "// edit %d\n", salt)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
