// SPDX-License-Identifier: Apache-2.0

package runaway

import "path/filepath"

// Outside reports everything of the governor that lies in a directory: the store's own directory, and those in which the
// kill file and the pause file are looked for. It is what Open does with Options.Tree, for a caller who is given a
// Governor and knows the tree. nil: nothing lies in it. The error is a *ConfigError, or ErrClosed.
func (g *Governor) Outside(tree string) error {
	if g == nil || g.run == nil {
		return ErrClosed
	}
	var problems []error
	if located, ok := g.run.store.(Located); ok {
		if err := outside(tree, located.Dir()); err != nil {
			problems = append(problems, err)
		}
	}
	for _, file := range []string{g.run.files.kill, g.run.files.pause} {
		if file == "" {
			continue
		}
		if err := outside(tree, filepath.Dir(file)); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &ConfigError{problems}
}
