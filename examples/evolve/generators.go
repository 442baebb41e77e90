// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/examples/evolve/internal/command"
	"github.com/evoseal/containment/examples/evolve/internal/openai"
	"github.com/evoseal/containment/examples/evolve/internal/repair"
	"github.com/evoseal/containment/examples/evolve/internal/variant"
	"github.com/evoseal/containment/isolation"
)

// generator is what writes the variants of a run.
type generator = variant.Generator

func newGenerator(o *options, l layout) (generator, error) {
	switch o.Generator {
	case "genetic":
		return newBreeder(l.search(), o)
	case "repair":
		return repair.New(repair.Config{}), nil
	case "openai":
		key, err := readKey(o.KeyFile)
		if err != nil {
			return nil, err
		}
		return openai.New(openai.Config{URL: o.URL, Model: o.Model, Key: key, Timeout: o.Patience})
	case "command":
		return command.New(command.Config{Args: o.Command, Timeout: o.Patience})
	}
	return nil, fmt.Errorf("there is no generator %q", o.Generator)
}

// readKey reads the one line of a file that nobody else can read. "" is no file, and no key.
func readKey(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("others can read %s; chmod 600 it", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(data))
	if key == "" || strings.ContainsAny(key, " \t\r\n") {
		return "", fmt.Errorf("%s does not hold one key on one line", path)
	}
	return key, nil
}

// asker is a generator as the boundary wants it. It is made for one step.
type asker struct {
	gen      generator
	who      isolation.GeneratorIdentity
	state    *variant.State
	proposed func([]allowlist.Edit)

	note      string
	exhausted bool
}

var _ isolation.Identified = (*asker)(nil)

// Identity says who is asked, so that the boundary decides again if it is somebody else.
func (a *asker) Identity() isolation.GeneratorIdentity { return a.who }

// Generate asks for the next variant. What it has cost is charged in any case.
func (a *asker) Generate(ctx context.Context, s *isolation.Spender) ([]allowlist.Edit, error) {
	p, err := a.gen.Next(ctx, a.state)
	a.note = p.Note
	a.exhausted = errors.Is(err, variant.ErrExhausted)
	if spent := s.Spend(p.Usage); spent != nil {
		return nil, errors.Join(err, spent)
	}
	if err != nil {
		return nil, err
	}
	a.proposed(p.Edits)
	return p.Edits, nil
}
