// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/evoseal/containment/allowlist"
)

// gateDir is the directory in Config.StateDir that holds the trusted copies.
const gateDir = "gate"

// gate are the copies of the files that decide about a variant: evaluator, tests, build files. Every run gets them in
// place of what its workspace has, whatever was done to the tree.
type gate struct {
	dir   string   // "" if there are none
	paths []string // sorted
}

// copyGate takes the protected files from the accepted tree, whose state was just compared with its checkpoint. Left
// out is what no run sees (version control) and what cannot decide anything because it is data that nobody reviews
// (opaque): both are compared by content at every step like everything else.
func (b *Boundary) copyGate() error {
	sealed, err := b.c.Edits.Seal(b.c.Tree)
	if err != nil {
		return err
	}
	b.at("gate-sealed")
	dir := filepath.Join(b.c.StateDir, gateDir)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var paths []string
	for path, digest := range sealed.Files() {
		if !b.decides(path) {
			continue
		}
		if err := b.copyOne(root, path, digest); err != nil {
			return fmt.Errorf("trusted copy of %+q: %w", path, err)
		}
		paths = append(paths, path)
	}
	b.gate = gate{paths: paths}
	if len(paths) > 0 {
		b.gate.dir = dir
	}
	return nil
}

// decides tells whether a protected file gets a trusted copy.
func (b *Boundary) decides(path string) bool {
	d := b.c.Edits.Explain(allowlist.Modify, path)
	return d.Code == allowlist.ErrProtected && d.Rule.Class != "opaque" && !hidden(path)
}

// copyOne writes the bytes that were sealed, or nothing.
func (b *Boundary) copyOne(root *os.Root, path string, want allowlist.Digest) error {
	content, err := b.c.Tree.ReadFile(path)
	if err != nil {
		return err
	}
	if allowlist.Sum(content) != want {
		return fmt.Errorf("it changed while it was read: %w", allowlist.ErrTampered)
	}
	info, err := os.Lstat(filepath.Join(b.dir, filepath.FromSlash(path)))
	if err != nil {
		return err
	}
	name := filepath.FromSlash(path)
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return root.WriteFile(name, content, info.Mode().Perm()|0o400)
}

// readOnly adds the paths of the copies to those that the host names.
func (g *gate) readOnly(own []string) []string {
	all := append(slices.Clone(own), g.paths...)
	slices.Sort(all)
	return slices.Compact(all)
}

func (g *gate) names() []string { return slices.Clone(g.paths) }
