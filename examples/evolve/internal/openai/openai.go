// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
)

// Generator asks a model for each variant. It is safe for use by several goroutines.
type Generator struct {
	config   Config
	endpoint string
	client   *http.Client
}

// New makes a Generator, or refuses with ErrConfig. It asks nobody yet.
func New(c Config) (*Generator, error) {
	g := &Generator{config: c.withDefaults(), client: newClient()}
	var err error
	g.endpoint, err = c.endpoint()
	if err != nil {
		return nil, err
	}
	return g, nil
}

var _ variant.Generator = (*Generator)(nil)

// Next asks the model and parses its answer.
func (g *Generator) Next(ctx context.Context, s *variant.State) (variant.Proposal, error) {
	text, spent, err := g.ask(ctx, prompt(s))
	p := variant.Proposal{Usage: spent}
	if err != nil {
		return p, err
	}
	if p.Edits, err = allowlist.ParseSearchReplace([]byte(blocks(text)), s); err != nil {
		return p, fmt.Errorf("openai: the answer does not fit the surface, which is %s: %w", names(s.Surface), err)
	}
	p.Note = note(g.config.Model, p.Edits)
	return p, nil
}

// note names the files that the model wants to change. They are its own words, so they are quoted.
func note(model string, edits []allowlist.Edit) string {
	var names []string
	for _, e := range edits {
		names = append(names, fmt.Sprintf("%v %+q", e.Op, e.Path))
	}
	slices.Sort(names)
	text := model + ": " + strings.Join(names, ", ")
	return text[:min(len(text), 200)]
}

// names lists the first files of a surface, so that a model which wants others learns that it may not.
func names(surface []variant.File) string {
	const most = 8
	var all []string
	for _, f := range surface[:min(len(surface), most)] {
		all = append(all, fmt.Sprintf("%+q", f.Path))
	}
	if n := len(surface) - most; n > 0 {
		all = append(all, fmt.Sprintf("%d more", n))
	}
	return strings.Join(all, ", ")
}
