// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/evoseal/containment/examples/evolve/internal/binpack"
	"github.com/evoseal/containment/examples/internal/executors"
)

// options are what a run is started with. What belongs to the run itself is kept in its state, so that -resume needs
// nothing else; the fields without a name in JSON hold for one start only.
type options struct {
	Problem   string        `json:"problem,omitempty"`
	Seed      uint64        `json:"seed"`
	Screen    int           `json:"screen"`
	Generator string        `json:"generator"`
	Command   []string      `json:"command,omitempty"`
	URL       string        `json:"url,omitempty"`
	Model     string        `json:"model,omitempty"`
	KeyFile   string        `json:"key_file,omitempty"`
	Calls     int64         `json:"calls,omitempty"`
	Tokens    int64         `json:"tokens,omitempty"`
	Tree      string        `json:"tree,omitempty"`
	Surface   []string      `json:"surface,omitempty"`
	Test      string        `json:"test,omitempty"`
	Max       int           `json:"max"`
	Executor  string        `json:"executor"`
	KillFile  string        `json:"kill_file,omitempty"`
	Started   time.Time     `json:"started"`
	Wall      time.Duration `json:"wall"`
	Patience  time.Duration `json:"patience,omitempty"`

	Instances  []string `json:"-"`
	State      string   `json:"-"`
	Resume     bool     `json:"-"`
	Override   string   `json:"-"`
	Approval   string   `json:"-"`
	Curve      string   `json:"-"`
	Verbose    bool     `json:"-"`
	OldRuntime bool     `json:"-"`
	given      map[string]bool
}

// What a run does that is asked for nothing else.
const (
	defaultMax    = 120
	defaultScreen = 250
)

// errUsage is a wrong call, which was explained.
var errUsage = errors.New("wrong call")

func parse(args []string, w io.Writer) (*options, error) {
	o := &options{given: map[string]bool{}}
	f, rest := flags(o)
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(w, help)
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w; -h explains all flags", errUsage, err)
	}
	f.Visit(func(f *flag.Flag) { o.given[f.Name] = true })
	o.Command = rest()
	err := o.check()
	// A run may be resumed from another directory.
	for _, path := range []*string{&o.KillFile, &o.KeyFile} {
		if *path != "" {
			abs, absErr := filepath.Abs(*path)
			*path, err = abs, errors.Join(err, absErr)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w; -h explains all flags", errUsage, err)
	}
	return o, nil
}

// flags are explained in help.go, since what package flag prints has no order and no sections.
func flags(o *options) (f *flag.FlagSet, rest func() []string) {
	f = flag.NewFlagSet("evolve", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.Problem, "problem", "", "")
	f.Uint64Var(&o.Seed, "seed", 1, "")
	f.IntVar(&o.Screen, "screen", defaultScreen, "")
	f.IntVar(&o.Max, "max", defaultMax, "")
	f.Func("instances", "", appendTo(&o.Instances))
	f.StringVar(&o.Tree, "tree", "", "")
	f.Func("surface", "", appendTo(&o.Surface))
	f.StringVar(&o.Test, "test", "go test ./...", "")
	f.StringVar(&o.Generator, "generator", "", "")
	f.StringVar(&o.URL, "url", "", "")
	f.StringVar(&o.Model, "model", "", "")
	f.StringVar(&o.KeyFile, "key-file", "", "")
	f.Int64Var(&o.Calls, "calls", 0, "")
	f.Int64Var(&o.Tokens, "tokens", 1_000_000, "")
	f.StringVar(&o.Executor, "executor", executors.Auto, "")
	f.BoolVar(&o.OldRuntime, "allow-old-runtime", false, "")
	f.DurationVar(&o.Wall, "wall", time.Minute, "")
	f.DurationVar(&o.Patience, "patience", 2*time.Minute, "")
	f.StringVar(&o.KillFile, "kill-file", "", "")
	f.StringVar(&o.State, "state", "", "")
	f.BoolVar(&o.Resume, "resume", false, "")
	f.StringVar(&o.Override, "override", "", "")
	f.StringVar(&o.Approval, "approval", "", "")
	f.StringVar(&o.Curve, "curve", "", "")
	f.BoolVar(&o.Verbose, "v", false, "")
	return f, f.Args
}

func appendTo(list *[]string) func(string) error {
	return func(s string) error {
		if s == "" {
			return errors.New("must not be empty")
		}
		*list = append(*list, s)
		return nil
	}
}

// forRun are the flags that belong to a run and cannot be changed when it goes on.
var forRun = []string{
	"problem", "seed", "screen", "tree", "surface", "test", "generator", "url", "model", "wall", "kill-file",
}

// check refuses what makes no sense, and fills in what follows from the rest.
func (o *options) check() error {
	var all []error
	wrong := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if o.Resume {
		for _, name := range forRun {
			if o.given[name] {
				wrong("-%s belongs to the run that is resumed", name)
			}
		}
		if len(o.Command) > 0 {
			wrong("the command belongs to the run that is resumed")
		}
	}
	if o.Max < 1 || o.Max > 1_000_000 {
		wrong("-max must be from 1 to 1,000,000")
	}
	if o.Screen < 0 || o.Screen > 100_000 {
		wrong("-screen must be from 0 to 100,000")
	}
	if o.Wall < time.Second || o.Wall > time.Hour {
		wrong("-wall must be from 1 s to 1 h")
	}
	if o.Patience < time.Second || o.Patience > time.Hour {
		wrong("-patience must be from 1 s to 1 h")
	}
	if o.Tokens < 1 || o.Calls < 0 {
		wrong("-tokens and -calls must be positive")
	}
	if o.Executor != executors.Auto && !slices.Contains(executors.Names(), o.Executor) {
		wrong("there is no executor %q; take auto or one of %s", o.Executor, strings.Join(executors.Names(), ", "))
	}
	o.checkJob(wrong)
	o.checkGenerator(wrong)
	return errors.Join(all...)
}

func (o *options) checkJob(wrong func(string, ...any)) {
	if o.Tree != "" {
		if o.Problem != "" || len(o.Instances) > 0 {
			wrong("-problem and -instances belong to bin packing, and not to -tree")
		}
		if len(o.Surface) == 0 {
			wrong("-tree needs -surface: what may be changed")
		}
		if len(strings.Fields(o.Test)) == 0 {
			wrong("-test is empty")
		}
		return
	}
	if len(o.Surface) > 0 || o.given["test"] {
		wrong("-surface and -test belong to -tree")
	}
	if o.Problem != "" {
		if _, err := binpack.ParseProblem(o.Problem); err != nil {
			wrong("%w", err)
		}
	}
}

func (o *options) checkGenerator(wrong func(string, ...any)) {
	if o.Generator == "" {
		o.Generator = "genetic"
		if o.Tree != "" {
			o.Generator = "repair"
		}
	}
	switch o.Generator {
	case "genetic":
		if o.Tree != "" {
			wrong("-generator genetic knows bin packing only; for -tree take repair, openai or command")
		}
	case "repair":
		if o.Tree == "" {
			wrong("-generator repair needs -tree")
		}
	case "openai":
		if o.URL == "" || o.Model == "" {
			wrong("-generator openai needs -url and -model")
		}
		if o.Calls == 0 {
			o.Calls = 3 * int64(o.Max)
		}
	case "command":
		if len(o.Command) == 0 {
			wrong("-generator command needs a program behind --")
		}
	default:
		wrong("there is no generator %q; take genetic, repair, openai or command", o.Generator)
	}
	if o.Generator != "openai" && (o.URL != "" || o.Model != "" || o.KeyFile != "") {
		wrong("-url, -model and -key-file belong to -generator openai")
	}
	if o.Generator != "command" && len(o.Command) > 0 && !o.Resume {
		wrong("%q is not a flag, and only -generator command takes a program", o.Command[0])
	}
}
