// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// digest describes a tree completely enough to show any change: names, kinds, modes, times of change, sizes, link
// targets and contents. A name that was made and removed again shows in its directory's time.
func digest(root string) (map[string]string, error) {
	tree := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		line := fmt.Sprintf("%v %d", fi.Mode(), fi.ModTime().UnixNano())
		switch {
		case fi.Mode().IsRegular():
			line += fmt.Sprintf(" %d %s", fi.Size(), fileSum(p))
		case fi.Mode()&os.ModeSymlink != 0:
			target, _ := os.Readlink(p)
			line += " -> " + target
		}
		tree[rel] = line
		return nil
	})
	return tree, err
}

// changes names what differs between two digests.
func changes(before, after map[string]string) string {
	var list []string
	for name, was := range before {
		if is, ok := after[name]; !ok {
			list = append(list, name+" is gone")
		} else if is != was {
			list = append(list, fmt.Sprintf("%s was %q, is %q", name, was, is))
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			list = append(list, name+" is new")
		}
	}
	return strings.Join(list, "; ")
}

// unchanged takes the digest of a tree and returns a function that says what has changed since.
func (s *scene) unchanged(root string) (func() error, error) {
	before, err := digest(root)
	if err != nil {
		return nil, s.fault(err)
	}
	return func() error {
		after, err := digest(root)
		if err != nil {
			return s.breach("%s cannot be read any more: %v", root, err)
		}
		if diff := changes(before, after); diff != "" {
			return s.breach("%s has changed: %s", root, diff)
		}
		return nil
	}, nil
}
