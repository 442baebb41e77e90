// SPDX-License-Identifier: Apache-2.0

package rollback_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/evoseal/containment/rollback"
)

// An edit goes wrong: a file is overwritten, another one is gone, a third is new. All of it is taken back.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "rollback-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "tree")
	write := func(name, text string) {
		file := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	write("main.py", "print('works')\n")
	write("data/state.json", "{}\n")

	store, err := rollback.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Recover(ctx); err != nil { // finishes what a crash interrupted
		log.Fatal(err)
	}
	before, err := store.Checkpoint(ctx, tree, rollback.Meta{Label: "before the edit"})
	if err != nil {
		log.Fatal(err)
	}

	write("main.py", "print('broken'\n")
	write("junk.txt", "?\n")
	if err := os.Remove(filepath.Join(tree, "data/state.json")); err != nil {
		log.Fatal(err)
	}

	done, err := store.Restore(ctx, before.ID, tree)
	if err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(tree, "main.py"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	fmt.Println("as before:", done.Digest == before.Digest)
	fmt.Println("can be undone:", !done.Safety.IsZero())
	// Output:
	// print('works')
	// as before: true
	// can be undone: true
}
