// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sources are those of the program that answers a run's go command. Go itself compiles it: there is a Go here.
//
//go:embed internal/seedcache/main.go internal/seedcache/cache.go
var sources embed.FS

// eachSource calls f for each of them, by base name.
func eachSource(f func(name string, data []byte) error) error {
	return fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		return f(d.Name(), data)
	})
}

// build makes the seed. The lock is held by every process of it, so that what a killed host program leaves running
// keeps the next one out.
func (s *seed) build(ctx context.Context, lock *os.File) error {
	for _, step := range []struct {
		rule string
		do   func(context.Context, *os.File) error
	}{
		{"must be writable for the caller", s.makeDirs},
		{"its cache program must compile, which takes Go 1.24 or later", s.buildProgram},
		{"the packages of " + s.config.Module + " must compile", s.buildPackages},
		{"what was built must become the seed", s.settle},
	} {
		if err := step.do(ctx, lock); err != nil {
			return s.fail(s.dir, step.rule, "", err)
		}
	}
	return nil
}

func (s *seed) makeDirs(context.Context, *os.File) error {
	for _, dir := range []string{s.dir, filepath.Join(s.dir, "cache"), filepath.Join(s.dir, "mod"), s.temporary()} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// buildProgram compiles the cache program.
func (s *seed) buildProgram(ctx context.Context, lock *os.File) (err error) {
	dir, err := os.MkdirTemp(s.private, "source-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	write := func(name string, data []byte) error { return os.WriteFile(filepath.Join(dir, name), data, 0o600) }
	if err := errors.Join(eachSource(write), write("go.mod", []byte("module seedcache\n\ngo 1.24\n"))); err != nil {
		return err
	}
	env := s.buildEnv()
	env["CGO_ENABLED"], env["GOFLAGS"] = "0", "" // one file that needs nothing inside
	env["TMPDIR"] = s.temporary()
	c := s.goCommand(dir, env, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(s.dir, program), ".")
	c.keep = lock
	_, err = c.output(ctx)
	return err
}

// buildPackages compiles everything that is to be in the seed, with its tests, and runs nothing of it. It does so
// twice: the first time into the host's cache, where the next seed finds it too, and the second time from there into
// this one.
func (s *seed) buildPackages(ctx context.Context, lock *os.File) error {
	nothing := filepath.Join(s.dir, "true")
	if err := os.Symlink(program, nothing); err != nil {
		return err
	}
	first, second := s.buildEnv(), s.buildEnv()
	for _, env := range []map[string]string{first, second} {
		env["GOMODCACHE"], env["TMPDIR"] = filepath.Join(s.dir, "mod"), s.temporary()
	}
	second["GOCACHE"] = s.recorded()
	second["GOCACHEPROG"] = filepath.Join(s.dir, program) + " record " + s.config.BuildCache
	commands := [][]string{append([]string{"test", "-count=1", "-exec=" + nothing}, s.config.Packages...)}
	if len(s.config.Extra) > 0 {
		commands = append(commands, append([]string{"list", "-deps", "-export", "-f", "{{.Export}}"}, s.config.Extra...))
	}
	for _, env := range []map[string]string{first, second} {
		for _, args := range commands {
			c := s.goCommand(s.config.Module, env, args...)
			c.keep = lock
			if _, err := c.output(ctx); err != nil {
				return err
			}
		}
	}
	return os.Remove(nothing)
}

// recorded is where GOCACHE is during the build.
func (s *seed) recorded() string { return filepath.Join(s.dir, "recorded") }

// temporary is where TMPDIR is during the build: what a killed go command leaves there goes with the unfinished seed.
func (s *seed) temporary() string { return filepath.Join(s.dir, "tmp") }

// settle turns what the cache program has recorded into the read-only part of the seed, and declares the seed complete.
func (s *seed) settle(context.Context, *os.File) error {
	index, err := s.moveOutputs()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "cache", "index"), index, 0o644); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(s.recorded()), os.RemoveAll(s.temporary())); err != nil {
		return err
	}
	if err := freeze(s.dir); err != nil {
		return err
	}
	return declareComplete(s.dir)
}

// moveOutputs moves the outputs that an action names, and returns the index of the actions.
func (s *seed) moveOutputs() ([]byte, error) {
	own := filepath.Join(s.recorded(), "own")
	actions, err := filepath.Glob(filepath.Join(own, "*-a"))
	if err != nil {
		return nil, err
	}
	var index bytes.Buffer
	for _, file := range actions {
		output, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		to := filepath.Join(s.dir, "cache", string(output)+"-d")
		if err := os.Rename(filepath.Join(own, string(output)+"-d"), to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		fi, err := os.Stat(to) // several actions can have the same output
		if err != nil {
			return nil, err
		}
		action := strings.TrimSuffix(filepath.Base(file), "-a")
		fmt.Fprintf(&index, "%s %s %d\n", action, output, fi.Size())
	}
	if index.Len() == 0 {
		return nil, errors.New("the go command put nothing into the cache; it needs to be Go 1.24 or later")
	}
	return index.Bytes(), nil
}
