// SPDX-License-Identifier: Apache-2.0

package scratch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/internal/scratch"
)

func ExampleCopy() {
	ctx := context.Background()
	top, _ := os.MkdirTemp("", "example")
	defer scratch.Remove(ctx, top)
	src, dst := filepath.Join(top, "workspace"), filepath.Join(top, "private")
	_ = os.MkdirAll(filepath.Join(src, ".git"), 0o755)
	_ = os.WriteFile(filepath.Join(src, "main.go"), []byte("package main\n"), 0o644)
	_ = unix.Mkfifo(filepath.Join(src, "pipe"), 0o644)
	_ = os.Mkdir(dst, 0o700)

	o := scratch.Options{OmitNames: []string{".git", ".env"}, MaxBytes: 1 << 30, MaxFiles: 100_000}
	_, err := scratch.Copy(ctx, src, dst, o)
	fmt.Println(errors.Is(err, scratch.ErrSpecial), err)

	_ = scratch.Remove(ctx, dst)
	_ = os.Mkdir(dst, 0o700)
	o.Omit = []string{"pipe"}
	stats, err := scratch.Copy(ctx, src, dst, o)
	fmt.Println(stats.Files, stats.Bytes, err)
	// Output:
	// true scratch: copy "pipe": FIFO: special files are not copied; hide it by Spec.Hidden or remove it
	// 1 13 <nil>
}
