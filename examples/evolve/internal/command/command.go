// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/evoseal/containment/examples/evolve/internal/variant"
	"github.com/evoseal/containment/executor"
)

// The sentinels of this package.
var (
	ErrConfig   = errors.New("command: configuration refused")
	ErrFailed   = errors.New("command: the program failed")
	ErrTooLarge = errors.New("command: the program printed too much")
	ErrTimeout  = errors.New("command: the program took too long")
	ErrAnswer   = errors.New("command: what the program printed is no answer")
)

// Config says what to run. Args is needed.
type Config struct {
	Args []string          // the program and its arguments; a bare name is looked up once, in the caller's PATH
	Env  map[string]string // its environment, beside PATH, which is executor.DefaultPath if it is not named
	Dir  string            // its working directory; default the root, so that it cannot be the tree by accident

	Timeout   time.Duration // of one process; default 2 min
	MaxOutput int           // bytes on its standard output; default 1 MiB
}

// Generator runs the program once for each variant. It is safe for use by several goroutines.
type Generator struct {
	config Config
	path   string
	env    []string
}

// New finds the program, or refuses with ErrConfig. It starts nothing yet.
func New(c Config) (*Generator, error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return nil, fmt.Errorf("%w: Args names no program", ErrConfig)
	}
	path, err := exec.LookPath(c.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	g := &Generator{config: c, path: path}
	if g.config.Dir == "" {
		g.config.Dir = "/"
	}
	if g.config.Timeout <= 0 {
		g.config.Timeout = 2 * time.Minute
	}
	if g.config.MaxOutput <= 0 {
		g.config.MaxOutput = 1 << 20
	}
	if _, ok := c.Env["PATH"]; !ok {
		g.env = append(g.env, "PATH="+executor.DefaultPath)
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return nil, fmt.Errorf("%w: Env has the name %q", ErrConfig, name)
		}
		g.env = append(g.env, name+"="+value)
	}
	slices.Sort(g.env)
	return g, nil
}

var _ variant.Generator = (*Generator)(nil)

// Next runs the program and reads what it prints.
func (g *Generator) Next(ctx context.Context, s *variant.State) (variant.Proposal, error) {
	input, err := json.Marshal(s)
	if err != nil {
		return variant.Proposal{}, err
	}
	output, err := g.run(ctx, input)
	if err != nil {
		return variant.Proposal{}, err
	}
	p, err := parse(output, s)
	if p.Note == "" {
		p.Note = filepath.Base(g.path)
	}
	return p, err
}

// waitDelay is how long a child of the program may keep its output open.
const waitDelay = time.Second

// run starts one process and returns what it wrote to its standard output.
func (g *Generator) run(ctx context.Context, input []byte) ([]byte, error) {
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(g.config.Timeout, func() { cancel(fmt.Errorf("%w: %v", ErrTimeout, g.config.Timeout)) })
	defer timer.Stop()

	cmd := exec.CommandContext(run, g.path)
	cmd.Args, cmd.Env, cmd.Dir = g.config.Args, g.env, g.config.Dir
	cmd.WaitDelay = waitDelay
	group(cmd)
	cmd.Stdin = bytes.NewReader(input)
	out := &bounded{max: g.config.MaxOutput, over: func() {
		cancel(fmt.Errorf("%w: more than %d bytes", ErrTooLarge, g.config.MaxOutput))
	}}
	complaints := &tail{}
	cmd.Stdout, cmd.Stderr = out, complaints
	err := cmd.Run()
	killGroup(cmd)
	switch cause := context.Cause(run); {
	case cause != nil:
		return nil, cause
	case err != nil:
		// What it says is its own, so it is quoted.
		return nil, fmt.Errorf("%w: %w: %q", ErrFailed, err, complaints.text)
	}
	return out.buffer.Bytes(), nil
}

// bounded keeps what is written up to a limit, and reports the first byte beyond.
type bounded struct {
	buffer bytes.Buffer // not embedded: its ReadFrom knows no limit
	max    int
	over   func()
}

// Write takes everything, so that the program is not stopped by a full pipe before it is killed.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.max - b.buffer.Len()
	b.buffer.Write(p[:min(len(p), room)])
	if len(p) > room {
		b.over()
	}
	return len(p), nil
}

// tail keeps the last bytes that are written.
type tail struct{ text []byte }

const tailSize = 1 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p[max(0, len(p)-tailSize):]...)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(p), nil
}
