// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/evoseal/containment/executor"
)

const installGo = "install Go from go.dev in a directory that everybody can read, such as /usr/local/go"

// Go finds Go on the host. With [GoConfig.Seed] it also makes the seed, which takes as long as a build of everything,
// or finds the one that it made before and checks it. Errors match [executor.ErrUnsupported] if there is no usable
// Go, or [ErrSeed], or [ErrConfig].
func Go(ctx context.Context, c GoConfig) (*Toolchain, error) {
	g, err := findGo(ctx, c)
	if err != nil {
		return nil, err
	}
	t := &Toolchain{
		Name: "go", Version: g.env["GOVERSION"], Program: filepath.Join(g.root, "bin", "go"),
		Mounts: mounts(g.places()...), Env: g.runEnv(), Path: searchPath("go", filepath.Join(g.root, "bin")),
	}
	if c.Seed.Dir == "" {
		return t, nil
	}
	s, err := g.seed(ctx, c.Seed)
	if err != nil {
		return nil, err
	}
	t.Seed = s.dir
	t.Mounts = append(t.Mounts, executor.Mount{Source: s.dir, Target: s.dir})
	maps.Copy(t.Env, s.env())
	return t, nil
}

// Seed makes the seed that [Go] with the same configuration will use, or finds and checks it, and returns its
// directory. It is for programs that want to pay for it at a time of their choice.
func Seed(ctx context.Context, c GoConfig) (string, error) {
	if c.Seed.Dir == "" {
		return "", fault("Seed.Dir", "must name the directory for seeds")
	}
	t, err := Go(ctx, c)
	if err != nil {
		return "", err
	}
	return t.Seed, nil
}

// golang is a Go of the host.
type golang struct {
	root  string
	flags []string
	env   map[string]string // what go env says in the environment of a run
	cgo   bool
}

// asked are the variables that the code of a build depends on, beside its sources.
var asked = []string{
	"GOROOT", "GOVERSION", "GOOS", "GOARCH", "GOHOSTOS", "GOHOSTARCH", "GO386", "GOAMD64", "GOARM", "GOARM64", "GOMIPS",
	"GOMIPS64", "GOPPC64", "GORISCV64", "GOWASM", "GOEXPERIMENT", "GOFIPS140", "CC", "CXX",
}

func findGo(ctx context.Context, c GoConfig) (*golang, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	g := &golang{flags: c.Flags}
	err := find(ctx, "go", c.Program, installGo, func(program string) error {
		// GOENV is the caller's own configuration, and GOTOOLCHAIN could make the command download another one.
		env := map[string]string{
			"PATH": executor.DefaultPath, "GOENV": "off", "GOTOOLCHAIN": "local", "GOCACHE": "off",
		}
		out, err := command{
			program: program, args: append([]string{"env", "-json"}, asked...), env: env, limit: probeTime,
		}.output(ctx)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(out, &g.env); err != nil {
			return fmt.Errorf("%s env: %w", program, err)
		}
		g.root = g.env["GOROOT"]
		if err := executable(filepath.Join(g.root, "bin", "go")); err != nil {
			return fmt.Errorf("GOROOT %q: %w", g.root, err)
		}
		g.cgo = compiler(g.env["CC"])
		return errors.Join(trusted(g.root), reachable(g.root), g.trustedPrograms())
	})
	return g, err
}

// trustedPrograms: what builds a seed is not only the program that was found. The go command of GOROOT, which may be
// another one, and its compilers are started as the caller.
func (g *golang) trustedPrograms() error {
	for _, dir := range []string{"bin", "pkg/tool"} {
		dir = filepath.Join(g.root, dir)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := errors.Join(trusted(dir), trustedTree(resolve(dir))); err != nil {
			return fmt.Errorf("GOROOT %q: %w", g.root, err)
		}
	}
	return nil
}

// compiler reports whether a run with the default search path would find the C compiler that Go uses by default.
func compiler(cc string) bool {
	for _, dir := range filepath.SplitList(executor.DefaultPath) {
		if cc != "" && executable(filepath.Join(dir, cc)) == nil {
			return true
		}
	}
	return false
}

// places are GOROOT and where links directly in it lead to: Debian's packages keep the sources elsewhere.
func (g *golang) places() []string {
	list := []string{g.root}
	entries, err := os.ReadDir(g.root)
	if err != nil {
		return list
	}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink != 0 {
			list = append(list, resolve(filepath.Join(g.root, e.Name())))
		}
	}
	return list
}

// runEnv is the environment of a run. GOCACHE and GOPATH stay in the run's own home, as in every executor's base.
func (g *golang) runEnv() map[string]string {
	cgo := "0"
	if g.cgo {
		cgo = "1"
	}
	return map[string]string{
		"GOROOT":      g.root,
		"GOENV":       "off",   // no configuration file can add to this
		"GOTOOLCHAIN": "local", // the toolchain line in go.mod names another one: an error, and no download
		"GOPROXY":     "off",
		"GOSUMDB":     "off", // it is a service; go.sum is enforced all the same
		// A go.work file in a directory above the workspace would change what is built. -mod is left alone: its default is
		// readonly, or vendor where there is such a directory.
		"GOWORK": "off",
		// The workspace has no .git. Nor may the seed's build start one of the programs of version control.
		"GOFLAGS":     strings.Join(append([]string{"-buildvcs=false"}, g.flags...), " "),
		"CGO_ENABLED": cgo,
	}
}
