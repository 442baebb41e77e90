// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"fmt"
	"strings"

	"github.com/evoseal/containment/rollback/internal/object"
	"github.com/evoseal/containment/rollback/internal/scan"
)

// inSafety returns what the safety checkpoint has at a path, if the scan found the same.
func (r *restorer) inSafety(path string, was *scan.Node) known {
	if was == nil {
		return known{}
	}
	m, err := r.s.manifest(r.journal.Safety)
	if err != nil {
		return known{} // then it is not known, and goes to quarantine
	}
	e, ok := r.trees.find(m.Root, path)
	if !ok || knownOf(&e) != knownOf(&was.Entry) {
		return known{}
	}
	return knownOf(&e)
}

// compare plans the way from what was found to the checkpoint.
func (r *restorer) compare() (*plan, error) {
	known, err := r.skippedPaths()
	if err != nil {
		return nil, err
	}
	d := &planner{
		tree: r.trees.get, foreign: r.found.Foreign, staging: r.othersStaging(), known: known,
		policy: r.journal.Foreign, mtime: r.journal.MTime,
	}
	return d.diff(r.found.Root, r.manifest.Root)
}

// othersStaging returns the names at the top that begin like staging and are not ours.
func (r *restorer) othersStaging() (names []string) {
	tag := stagingTag(r.s.id, r.target.key)
	for _, name := range r.found.Staging {
		if !r.s.isOurs(r.target, name) && !strings.HasPrefix(name, keptPrefix+tag) {
			names = append(names, name)
		}
	}
	return names
}

// skippedPaths returns what the checkpoint itself found in the tree and left out.
func (r *restorer) skippedPaths() (map[string]bool, error) {
	if r.manifest.Skipped == (object.Hash{}) {
		return nil, nil
	}
	key := object.Key{Type: object.Skipped, Hash: r.manifest.Skipped}
	data, err := r.s.object(key)
	if err != nil {
		return nil, err
	}
	list, err := object.DecodeSkipped(data)
	if err != nil {
		return nil, &CorruptError{Object: key.String(), Why: err.Error()}
	}
	paths := map[string]bool{}
	for _, o := range list {
		paths[o.Path] = true
	}
	return paths, nil
}

// report notes what a plan will do.
func (r *restorer) report(p *plan) {
	r.out.Changes, r.out.Kept = p.changes, p.kept
	r.journal.Changes = p.changes
}

func (r *restorer) incomplete(p *plan) error {
	if len(p.stuck) == 0 {
		return nil
	}
	return fmt.Errorf("rollback: %w: %s", ErrIncomplete, quoted(p.stuck))
}
