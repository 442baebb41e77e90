// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ordinaryID is the uid and gid of the last pass. No host gives it any right.
const ordinaryID = 65534

// wrapper is the script that starts one test binary under ordinaryID.
const wrapper = ".ci/as-ordinary-user"

// prepareOrdinary is the pass that root makes as an ordinary user, through setpriv. That user needs a home, a temporary
// directory and a module cache of its own; the tests must not depend on what lies in root's home. The function that it
// returns is never nil and removes what was made.
func prepareOrdinary(ctx context.Context, modules []module) (p pass, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "gate-")
	if err != nil {
		return pass{}, func() error { return nil }, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	if err := os.Chmod(dir, 0o755); err != nil {
		return pass{}, remove, err
	}
	if err := prepareHome(ctx, dir, modules); err != nil {
		return pass{}, remove, err
	}
	top, err := filepath.Abs(".")
	if err != nil {
		return pass{}, remove, err
	}
	if !readable(ctx, top) {
		if modules, err = copyTree(dir, top, modules); err != nil {
			return pass{}, remove, err
		}
	}
	start := []string{filepath.Join(top, wrapper), strconv.Itoa(ordinaryID), dir}
	return pass{name: "ordinary user", modules: modules, part: again, exec: start}, remove, nil
}

// prepareHome makes home and tmp, which the ordinary user owns, and mod, a module cache that it can read. The modules
// come out of root's own cache where that has them.
func prepareHome(ctx context.Context, dir string, modules []module) error {
	for _, name := range []string{"home", "tmp"} {
		sub := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(sub, 0o700), os.Chown(sub, ordinaryID, ordinaryID)); err != nil {
			return err
		}
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	cache, proxy, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	env := append(os.Environ(), "GOFLAGS=-modcacherw", "GOMODCACHE="+filepath.Join(dir, "mod"),
		"GOPROXY=file://"+filepath.Join(cache, "cache", "download")+","+proxy)
	for _, m := range modules {
		// What each module needs by itself, on any system; and what the work file selects for the tests here.
		for _, args := range [][]string{{"mod", "download"}, {"list", "-deps", "-test", "./..."}} {
			cmd := exec.CommandContext(ctx, "go", args...)
			cmd.Dir, cmd.Stderr, cmd.Env = m.dir, os.Stderr, env
			if args[0] == "mod" {
				cmd.Env = append(slices.Clip(env), "GOWORK=off")
			}
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("go %s in %s: %w", strings.Join(args, " "), m.dir, err)
			}
		}
	}
	return nil
}

// readable reports whether the ordinary user can enter the tree.
func readable(ctx context.Context, top string) bool {
	id := strconv.Itoa(ordinaryID)
	return exec.CommandContext(ctx, "setpriv", "--reuid="+id, "--regid="+id, "--clear-groups",
		"cat", filepath.Join(top, "go.mod")).Run() == nil
}

// copyTree is for a checkout below a private directory, such as root's home.
func copyTree(dir, top string, modules []module) ([]module, error) {
	tree := filepath.Join(dir, "tree")
	if err := os.CopyFS(tree, os.DirFS(top)); err != nil {
		return nil, fmt.Errorf("uid %d cannot read %s, and copying it failed: %w", ordinaryID, top, err)
	}
	var copies []module
	for _, m := range modules {
		rel, err := filepath.Rel(top, m.dir)
		if err != nil {
			return nil, err
		}
		copies = append(copies, module{filepath.Join(tree, rel), m.packages})
	}
	return copies, nil
}
