// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/evoseal/containment/executor"
)

// A seed is a directory named by a hash of everything that it depends on:
//
//	seedcache  the program that the run's go command uses as its cache
//	cache/     index and outputs
//	mod/       the module cache, with the modules that are needed and no others
//	complete   written last, in one step: without it there is no seed
//
// It is built at its final place, since the identity of a compiled package includes its directory in mod/.
type seed struct {
	dir     string // the seed itself
	private string // for the host alone: caches for what is not part of a seed
	config  GoSeed
	golang  *golang
}

const (
	program  = "seedcache"
	complete = "complete"
	// format is part of the key, so that seeds of another version of this package are not used.
	format = 1
)

// seed returns the seed of this key, and makes it if it is not there.
func (g *golang) seed(ctx context.Context, c GoSeed) (*seed, error) {
	s, err := g.openSeed(ctx, c)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(ctx, s.dir+".lock")
	if err != nil {
		return nil, s.fail(s.dir+".lock", "must be free, or become so in time", "", err)
	}
	defer lock.Close()
	switch _, err := os.Lstat(filepath.Join(s.dir, complete)); {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		// Not there, or left by a build that did not come to its end.
		if err := removeSeed(s.dir); err != nil {
			return nil, s.fail(s.dir, "the rest of an unfinished build must be removable", "", err)
		}
		if err := s.build(ctx, lock); err != nil {
			return nil, errors.Join(err, removeSeed(s.dir))
		}
	default:
		return nil, s.fail(s.dir, "must be readable", "", err)
	}
	if err := verifySeed(s.dir); err != nil {
		return nil, err
	}
	return s, nil
}

// openSeed checks the directories and computes the key.
func (g *golang) openSeed(ctx context.Context, c GoSeed) (*seed, error) {
	if len(c.Packages) == 0 {
		c.Packages = []string{"./..."}
	}
	s := &seed{config: c, golang: g}
	const tree = "must be a trusted tree: neither a variant's nor writable for others"
	if _, err := os.Stat(filepath.Join(c.Module, "go.mod")); err != nil {
		return nil, s.fail(c.Module, "must be the directory of a main module", "set Seed.Module", err)
	}
	if err := trustedTree(c.Module); err != nil {
		return nil, s.fail(c.Module, tree, "give it to the caller and chmod -R go-w", err)
	}
	s.private = filepath.Join(c.Dir, "host")
	if err := makeSeedDirs(c.Dir, s.private); err != nil {
		return nil, s.fail(c.Dir, "must be the caller's alone, and readable for others if the caller is root",
			"use a directory such as /var/lib/NAME", err)
	}
	if s.config.BuildCache == "" {
		s.config.BuildCache = filepath.Join(s.private, "cache")
	}
	if s.config.ModCache == "" {
		var err error
		if s.config.ModCache, err = g.hostModCache(ctx); err != nil {
			return nil, s.fail("GOMODCACHE", "must be known", "set Seed.ModCache", err)
		}
	}
	key, err := s.key(ctx)
	if err != nil {
		return nil, s.fail(c.Module, "its packages must load from go.mod, go.sum and the module cache "+s.config.ModCache,
			"run go mod tidy and go mod download in it", err)
	}
	s.dir = filepath.Join(c.Dir, key)
	return s, nil
}

func (s *seed) fail(path, rule, fix string, err error) error {
	return &SeedError{Path: path, Rule: rule, Fix: fix, Err: err}
}

// makeSeedDirs makes what is not there, and demands the rest.
func makeSeedDirs(dir, private string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	switch err := os.Mkdir(dir, 0o755); {
	case err == nil:
		if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask is
			return err
		}
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	if err := errors.Join(trusted(dir), reachable(dir)); err != nil {
		return err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if err := oursAlone(dir, fi); err != nil { // a sticky bit is not enough here
		return err
	}
	if err := os.Mkdir(private, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if fi, err = os.Lstat(private); err != nil {
		return err
	}
	return oursAlone(private, fi)
}

// noConfig as XDG_CONFIG_HOME keeps the go command from starting a process for telemetry that outlives it: a path
// that is not absolute is none.
const noConfig = "none"

// hostModCache asks Go where the caller has its modules. Only what names that place is passed on.
func (g *golang) hostModCache(ctx context.Context) (string, error) {
	env := map[string]string{"PATH": executor.DefaultPath, "GOTOOLCHAIN": "local", "XDG_CONFIG_HOME": noConfig}
	if config, err := os.UserConfigDir(); err == nil {
		env["GOENV"] = filepath.Join(config, "go", "env")
	}
	for _, name := range []string{"HOME", "GOENV", "GOPATH", "GOMODCACHE"} {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	out, err := command{
		program: filepath.Join(g.root, "bin", "go"), args: []string{"env", "GOMODCACHE"}, env: env, limit: probeTime,
	}.output(ctx)
	dir := strings.TrimSuffix(string(out), "\n")
	if err == nil && !filepath.IsAbs(dir) {
		err = fmt.Errorf("go env GOMODCACHE says %q", dir)
	}
	return dir, err
}

// buildEnv is the environment of a run, but for what a build on the host needs otherwise. What decides about the
// identity of a compiled package must be the same in both.
func (s *seed) buildEnv() map[string]string {
	env := s.golang.runEnv()
	env["PATH"] = filepath.Join(s.golang.root, "bin") + ":" + executor.DefaultPath
	env["HOME"], env["TMPDIR"] = s.private, os.TempDir()
	env["LANG"], env["TZ"], env["XDG_CONFIG_HOME"] = "C.UTF-8", "UTC", noConfig
	env["GOCACHE"] = s.config.BuildCache
	// Modules come out of the archives in the host's cache and are checked against go.sum; what is unpacked there is not
	// used, and nothing is written there.
	env["GOPROXY"] = "file://" + filepath.ToSlash(filepath.Join(s.config.ModCache, "cache", "download"))
	env["GOMODCACHE"] = filepath.Join(s.private, "mod")
	env["GOFLAGS"] += " -modcacherw" // until the seed is frozen
	return env
}

// env is what a run needs beside the environment of Go without a seed.
func (s *seed) env() map[string]string {
	return map[string]string{
		"GOMODCACHE":  filepath.Join(s.dir, "mod"),
		"GOCACHEPROG": filepath.Join(s.dir, program) + " seed " + filepath.Join(s.dir, "cache"),
	}
}

// key hashes what the seed depends on: this package's format and program, Go and its settings, what is to be built, the
// requirements of the module, and the packages outside of it that it uses. Its own packages are left out, since every
// accepted variant would otherwise need a new seed; what they share is elsewhere.
func (s *seed) key(ctx context.Context) (string, error) {
	const external = "{{if .Standard}}{{.ImportPath}}{{else}}{{with .Module}}{{if not .Main}}{{$.ImportPath}} {{.}}" +
		"{{end}}{{end}}{{end}}"
	lists := [][]string{append([]string{"list", "-deps", "-test", "-f", external}, s.config.Packages...)}
	if len(s.config.Extra) > 0 {
		lists = append(lists, append([]string{"list", "-deps", "-f", external}, s.config.Extra...))
	}
	var deps []string
	for _, args := range lists {
		out, err := s.goCommand(s.config.Module, s.buildEnv(), args...).output(ctx)
		if err != nil {
			return "", err
		}
		deps = append(deps, string(out))
	}
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, part := range []any{
		format, s.config.Dir, s.golang.env, s.golang.runEnv(), s.config.Packages, s.config.Extra, deps,
	} {
		if err := enc.Encode(part); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(s.config.Module, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := enc.Encode(data); err != nil {
			return "", err
		}
	}
	if err := eachSource(func(name string, data []byte) error { return enc.Encode(data) }); err != nil {
		return "", err
	}
	return "go-" + hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func (s *seed) goCommand(dir string, env map[string]string, args ...string) command {
	return command{program: filepath.Join(s.golang.root, "bin", "go"), args: args, env: env, dir: dir, limit: buildTime}
}
