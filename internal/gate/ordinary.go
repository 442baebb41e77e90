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

// ordinaryID is the uid and gid of the second pass. No host gives it any right.
const ordinaryID = 65534

// wrapper is the script that starts one test binary under ordinaryID.
const wrapper = ".ci/as-ordinary-user"

// ordinaryPass runs everything as an ordinary user. Root gets there through setpriv, and needs a home, a temporary
// directory and a module cache that the other uid can use; the tests must not depend on what lies in root's home.
func ordinaryPass(ctx context.Context, p pass, root bool) (t *tally, err error) {
	if !root {
		return runPass(ctx, p)
	}
	dir, err := os.MkdirTemp("", "gate-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	if err := prepareHome(ctx, dir, p.modules); err != nil {
		return nil, err
	}
	top, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	if !readable(ctx, top) {
		if p.modules, err = copyTree(dir, top, p.modules); err != nil {
			return nil, err
		}
	}
	p.exec = []string{filepath.Join(top, wrapper), strconv.Itoa(ordinaryID), dir}
	return runPass(ctx, p)
}

// prepareHome makes home and tmp, which the ordinary user owns, and mod, a module cache that it can read. The modules
// come out of root's own cache where that has them.
func prepareHome(ctx context.Context, dir string, modules []string) error {
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
	for _, module := range modules {
		// What each module needs by itself, on any system; and what the work file selects for the tests here.
		for _, args := range [][]string{{"mod", "download"}, {"list", "-deps", "-test", "./..."}} {
			cmd := exec.CommandContext(ctx, "go", args...)
			cmd.Dir, cmd.Stderr, cmd.Env = module, os.Stderr, env
			if args[0] == "mod" {
				cmd.Env = append(slices.Clip(env), "GOWORK=off")
			}
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("go %s in %s: %w", strings.Join(args, " "), module, err)
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
func copyTree(dir, top string, modules []string) ([]string, error) {
	tree := filepath.Join(dir, "tree")
	if err := os.CopyFS(tree, os.DirFS(top)); err != nil {
		return nil, fmt.Errorf("uid %d cannot read %s, and copying it failed: %w", ordinaryID, top, err)
	}
	var copies []string
	for _, module := range modules {
		rel, err := filepath.Rel(top, module)
		if err != nil {
			return nil, err
		}
		copies = append(copies, filepath.Join(tree, rel))
	}
	return copies, nil
}
