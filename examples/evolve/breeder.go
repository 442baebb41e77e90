// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/binpack"
	"github.com/evoseal/containment/examples/evolve/internal/genetic"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
)

// breeder makes a generator of the genetic search: an expression becomes the body of the evolved function. What it
// knows is in one file, which is written before a variant leaves it.
type breeder struct {
	path   string
	config genetic.Config
	search *genetic.Search
	told   int // iteration of the last verdict that the search knows
}

// breederState is the file.
type breederState struct {
	Told   int             `json:"told"`
	Search json.RawMessage `json:"search"`
}

func newBreeder(path string, o *options) (*breeder, error) {
	problem, err := binpack.ParseProblem(o.Problem)
	if err != nil {
		return nil, err
	}
	b := &breeder{path: path, config: genetic.Config{Seed: o.Seed, Problem: problem, Screen: o.Screen}}
	var st breederState
	switch err := loadJSON(path, &st); {
	case errors.Is(err, fs.ErrNotExist):
		return b, nil // New, with what is in the tree
	case err != nil:
		return nil, err
	}
	b.told = st.Told
	b.search, err = genetic.Restore(b.config, st.Search)
	return b, err
}

// Next implements variant.Generator.
func (b *breeder) Next(ctx context.Context, s *variant.State) (variant.Proposal, error) {
	source, err := s.ReadFile(evolved)
	if err != nil {
		return variant.Proposal{}, err
	}
	now, err := genetic.ParseFunc(source, function)
	if err != nil {
		return variant.Proposal{}, fmt.Errorf("what is in the tree was not bred here: %w", err)
	}
	if b.search == nil {
		b.search = genetic.New(b.config, now)
	}
	b.learn(s)
	// The tree says what was kept. After a crash that may be more than the history knows.
	b.search.Kept(now)
	e, err := b.search.Next(ctx)
	if err != nil {
		return variant.Proposal{}, err
	}
	content, err := allowlist.SpliceGoBody(source, function, []byte(e.Body()))
	if err != nil {
		return variant.Proposal{}, err
	}
	edit, err := s.Replace(evolved, content)
	if err != nil {
		return variant.Proposal{}, err
	}
	return variant.Proposal{Edits: []allowlist.Edit{edit}, Note: e.String()}, b.save()
}

// learn tells the search what became of what it proposed.
func (b *breeder) learn(s *variant.State) {
	for _, past := range s.History {
		if past.Iteration <= b.told {
			continue
		}
		b.told = past.Iteration
		if e, err := genetic.Parse(past.Note); err == nil && past.Score != nil {
			b.search.Told(e, past.Score.Value)
		}
	}
}

func (b *breeder) save() error {
	search, err := b.search.Snapshot()
	if err != nil {
		return err
	}
	return saveJSON(b.path, breederState{b.told, search})
}

// screened is how many candidates were interpreted by the host.
func (b *breeder) screened() int {
	if b.search == nil {
		return 0
	}
	return b.search.Screened()
}
