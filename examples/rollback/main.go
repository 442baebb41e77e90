// SPDX-License-Identifier: Apache-2.0

// Rollback takes a checkpoint of a small tree, breaks the tree in every way that it can think of, and takes all of it
// back; then it undoes even that, since a restore keeps what it found.
//
//	go run ./examples/rollback
//
// The exit code is 0 if both trees came back exactly, else 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/evoseal/containment/rollback"
)

// names are for people; what the operations mean is said where they are defined.
var names = map[rollback.Op]string{
	rollback.Create: "create", rollback.Replace: "replace", rollback.Remove: "remove", rollback.Retype: "retype",
	rollback.Attributes: "attributes",
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rollback:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "rollback-example-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	tree := filepath.Join(dir, "tree")
	if err := build(tree); err != nil {
		return err
	}
	// The store lies outside of the tree, where no variant can write.
	store, err := rollback.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	defer store.Close()
	if _, err := store.Recover(ctx); err != nil { // finishes what a crash interrupted
		return err
	}
	good, err := store.Checkpoint(ctx, tree, rollback.Meta{Label: "before the edit"})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "checkpoint: %d files, %d directories, %d links\n", good.Files, good.Dirs, good.Links)

	if err := ruin(tree); err != nil {
		return err
	}
	fmt.Fprintln(w, "the tree is broken; a restore does this:")
	restored, err := store.Restore(ctx, good.ID, tree)
	if err != nil {
		return err
	}
	for _, c := range restored.Changes {
		fmt.Fprintf(w, "  %-10s %s\n", names[c.Op], c.Path)
	}
	fmt.Fprintln(w, "the tree is what it was:", restored.Digest == good.Digest)

	// What the restore found is a checkpoint as well.
	broken, err := store.Get(ctx, restored.Safety)
	if err != nil {
		return err
	}
	undone, err := store.Restore(ctx, broken.ID, tree)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "the restore can be undone:", undone.Digest == broken.Digest)
	if restored.Digest != good.Digest || undone.Digest != broken.Digest {
		return errors.New("a tree is not what its checkpoint says")
	}
	return store.Verify(ctx, rollback.ID{}) // reads and hashes everything in the store
}

// build makes a tree with a file, a program, a directory and a link.
func build(tree string) error {
	return errors.Join(
		os.MkdirAll(filepath.Join(tree, "data/deep"), 0o755),
		os.WriteFile(filepath.Join(tree, "main.py"), []byte("print('works')\n"), 0o644),
		os.WriteFile(filepath.Join(tree, "run.sh"), []byte("#!/bin/sh\nexec python3 main.py\n"), 0o755),
		os.WriteFile(filepath.Join(tree, "data/deep/state.json"), []byte("{}\n"), 0o600),
		os.Symlink("data/deep", filepath.Join(tree, "current")),
	)
}

// ruin is the edit that nobody wants to keep.
func ruin(tree string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(tree, "main.py"), []byte("print('broken'\n"), 0o644),
		os.Chmod(filepath.Join(tree, "run.sh"), 0o644),
		os.RemoveAll(filepath.Join(tree, "data")),
		os.Symlink("/etc", filepath.Join(tree, "data")), // a directory became a link
		os.Remove(filepath.Join(tree, "current")),
		os.Mkdir(filepath.Join(tree, "current"), 0o755), // and a link a directory
		os.WriteFile(filepath.Join(tree, "current/junk"), []byte("?\n"), 0o644),
	)
}
