// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"fmt"
	"path/filepath"
	"strings"
)

// GoConfig says which Go a run gets. The zero value is the first trustworthy one of the host, without any module but
// the standard library, and without a seed: every run then compiles whatever it needs.
type GoConfig struct {
	// Program is the absolute path of the go command. Empty: the first "go" that is found, see the package documentation.
	Program string
	// Flags are for every go command of the run that knows them, in the form of GOFLAGS: "-race", "-tags=a,b". The seed is
	// built with the same.
	Flags []string
	// Seed says what the host has built in advance. The zero value is nothing.
	Seed GoSeed
}

// GoSeed describes a build cache and a module cache, made by the host from a trusted version of the program and shared
// read-only by all runs. It needs Go 1.24 or later on the host.
type GoSeed struct {
	// Dir is the absolute directory that holds seeds. It is made if necessary. It must belong to the caller, and nobody
	// else may write to it or to what it lies in. For root it must be reachable for others, since runs have a uid of
	// their own. It must lie outside of every workspace. Empty: no seed.
	Dir string
	// Module is the absolute directory of the trusted version's main module. It is compiled with the caller's rights, so
	// it must never be a variant. Its tests are compiled and not run. Nothing is written to it.
	Module string
	// Packages are what is compiled, with its tests. Default: "./...".
	Packages []string
	// Extra are further packages that variants may come to need and the trusted version does not: "std", or packages of
	// modules that go.mod requires.
	Extra []string
	// ModCache is the absolute directory of the host's module cache, from which the modules are copied: those that are
	// needed, checked against go.sum. Default: what `go env GOMODCACHE` says to the caller.
	ModCache string
	// BuildCache is the absolute directory of a GOCACHE of the host that no variant has ever written to. What it holds
	// need not be compiled once more. Default: one in Dir, which seeds alone use.
	BuildCache string
}

// PythonConfig says which Python a run gets. The zero value is the first trustworthy one of the host.
type PythonConfig struct {
	// Program is the absolute path of the interpreter. One in a virtual environment brings the packages of that. Empty:
	// the first "python3" that is found.
	Program string
	// Packages are absolute directories that are made readable and put into PYTHONPATH, such as a site-packages directory.
	Packages []string
}

// NodeConfig says which Node.js a run gets. The zero value is the first trustworthy one of the host.
type NodeConfig struct {
	// Program is the absolute path of the program. Empty: the first "node" that is found.
	Program string
}

func (c GoConfig) validate() error {
	if err := absolute("Program", c.Program, true); err != nil {
		return err
	}
	for i, flag := range c.Flags {
		// GOFLAGS is split at spaces, and a quote in it begins a quoted part.
		if !strings.HasPrefix(flag, "-") || strings.ContainsAny(flag, " \t\r\n\x00'\"") {
			return fault(fmt.Sprintf("Flags[%d]", i), "%q must begin with \"-\" and contain neither spaces nor quotes", flag)
		}
	}
	return c.Seed.validate()
}

func (s GoSeed) validate() error {
	if s.Dir == "" {
		if s.Module != "" || len(s.Packages)+len(s.Extra) > 0 || s.ModCache != "" || s.BuildCache != "" {
			return fault("Seed.Dir", "must be set if anything else in Seed is")
		}
		return nil
	}
	for _, p := range []struct {
		field, path string
		emptyOK     bool
	}{
		{"Seed.Dir", s.Dir, false}, {"Seed.Module", s.Module, false},
		{"Seed.ModCache", s.ModCache, true}, {"Seed.BuildCache", s.BuildCache, true},
	} {
		if err := absolute(p.field, p.path, p.emptyOK); err != nil {
			return err
		}
	}
	if strings.ContainsAny(s.Dir, " \t\r\n'\":") {
		return fault("Seed.Dir", "%q must contain neither spaces nor quotes nor ':'; GOCACHEPROG could not name it", s.Dir)
	}
	if within(resolve(s.Module), resolve(s.Dir)) || within(resolve(s.Dir), resolve(s.Module)) {
		return fault("Seed.Dir", "%q must neither lie in Seed.Module nor contain it", s.Dir)
	}
	for i, p := range append(append([]string{}, s.Packages...), s.Extra...) {
		if p == "" || strings.HasPrefix(p, "-") {
			return fault(fmt.Sprintf("Seed.Packages and Extra, number %d", i), "%q must be a package pattern", p)
		}
	}
	return nil
}

func absolute(field, p string, emptyOK bool) error {
	switch {
	case p == "" && emptyOK:
		return nil
	case !filepath.IsAbs(p) || strings.ContainsRune(p, 0):
		return fault(field, "%q must be an absolute path", p)
	}
	return nil
}

func fault(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrConfig, field, fmt.Sprintf(format, args...))
}
