// SPDX-License-Identifier: Apache-2.0

// Package executors opens the executors of this module for the programs in the directories beside it.
//
// The one for containers brings a large client with it, so it is compiled in only on request:
//
//	CGO_ENABLED=0 go run -tags containerd ./examples/evolve -executor containerd
//
// Without cgo the program is static. It proves a container by attacks that are the program itself, and a container in which
// nothing was declared has no loader for one that is not.
//
// # What it does not do
//
// It promises nothing about what it opens: a Candidate is a claim, and package isolation proves it.
package executors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/bubblewrap"
	"github.com/evoseal/containment/executor/rlimit"
	"github.com/evoseal/containment/isolation"
)

// Auto is the name that stands for all executors, the strongest first.
const Auto = "auto"

// Closer is what every executor of this module is.
type Closer interface {
	executor.Executor
	io.Closer
}

// Options are what the programs have to say about executors. The zero value is the strictest.
type Options struct {
	// Logger gets what the executors report outside of runs. Nil discards.
	Logger *slog.Logger
	// AllowOldRuntime accepts a container runtime with known holes; see containerd.Config.DangerAllowOldRuntime.
	AllowOldRuntime bool
}

// known lists the constructors, the strongest tier first.
var known = []struct {
	name string
	open func(context.Context, Options) (Closer, error)
}{
	{"containerd", openContainerd},
	{"bubblewrap", func(ctx context.Context, o Options) (Closer, error) {
		return bubblewrap.New(ctx, bubblewrap.Config{Logger: o.Logger})
	}},
	{"rlimit", func(ctx context.Context, o Options) (Closer, error) {
		return rlimit.New(ctx, rlimit.Config{Logger: o.Logger})
	}},
}

// Names returns the names that Open knows, the strongest tier first, without Auto.
func Names() []string {
	var names []string
	for _, k := range known {
		names = append(names, k.name)
	}
	return names
}

// Set holds executors that were opened, and what the constructors of the others said.
type Set struct {
	// Candidates are for isolation.Config.Executors, in the order of preference.
	Candidates []isolation.Candidate
}

// All opens every executor, the strongest first. What this host cannot give is in the set with its error.
func All(ctx context.Context, o Options) *Set {
	s, _ := Open(ctx, Auto, o) // Auto is always known
	return s
}

// Open opens the executor with this name, or all of them for Auto. A name that nobody has is an error; an executor that
// this host cannot give is not, but in the set with what its constructor said.
func Open(ctx context.Context, name string, o Options) (*Set, error) {
	if name != Auto && !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("there is no executor %q; take one of %s, or %s", name, strings.Join(Names(), ", "), Auto)
	}
	s := new(Set)
	for _, k := range known {
		if name != Auto && name != k.name {
			continue
		}
		c := isolation.Candidate{Name: k.name}
		// An interface that holds a nil pointer must not look like an executor, so it is set only without an error.
		if ex, err := k.open(ctx, o); err != nil {
			c.Err = err
		} else {
			c.Executor = ex
		}
		s.Candidates = append(s.Candidates, c)
	}
	return s, nil
}

// Close closes every executor of the set.
func (s *Set) Close() error {
	var errs []error
	for _, c := range s.Candidates {
		if ex, ok := c.Executor.(io.Closer); ok {
			errs = append(errs, ex.Close())
		}
	}
	return errors.Join(errs...)
}

// Prove attacks all that an executor claims, with more patience than a host needs that opens a boundary. Where an attack
// found no verdict, because the machine was too busy for it to get there, it is made again, three times in all; where one
// had an effect, that is the verdict.
func Prove(ctx context.Context, ex executor.Executor) (r isolation.Report, err error) {
	for range 3 {
		r, err = isolation.Verify(ctx, ex, &isolation.VerifyOptions{Timeout: time.Minute})
		hadEffect := func(p isolation.Probe) bool { return p.Result == isolation.Broken }
		if err == nil || ctx.Err() != nil || slices.ContainsFunc(r.Probes, hadEffect) {
			break
		}
	}
	return r, err
}
