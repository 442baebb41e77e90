// SPDX-License-Identifier: Apache-2.0

//go:build unix

package allowlist_test

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writers are the names of functions and methods that change a file system, in the packages that we could call.
var writers = []string{
	"WriteFile", "Create", "CreateTemp", "OpenFile", "Mkdir", "MkdirAll", "MkdirTemp", "Remove", "RemoveAll", "Rename",
	"Link", "Symlink", "Chmod", "Chown", "Lchown", "Chtimes", "Truncate", "CopyFS",
	"Mkdirat", "Unlinkat", "Renameat", "Renameat2", "Linkat", "Symlinkat", "Fchmod", "Fchmodat", "Fchown", "Fchownat",
	"Openat", "Openat2", "Open", "Creat", "Ftruncate", "Fallocate", "Mknodat", "Unlink", "Rmdir",
	// ours, of interface dir
	"createFile", "mkdir", "exchange", "remove", "rmdir", "chmod",
}

// allowedWriters are the files that may call them: the two walks, the transaction, the sweep of its leftovers. Files
// that only open to read are named with what they call.
var allowedWriters = map[string][]string{
	"walk_linux.go": nil, "portable.go": nil, "resolve_linux.go": {"Openat2"},
	"apply.go": {"remove"}, "apply_stage.go": nil, "apply_swap.go": nil, "tree_sweep.go": {"remove"},
	"tree_lock_unix.go": {"OpenFile"},
}

// readers open to read, in a package that knows no write: LoadFile.
var readers = []string{"Open"}

// TestOnlyApplyWrites: nothing but Apply and Revert changes a tree, and nothing starts a program that could.
func TestOnlyApplyWrites(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	must(t, err)
	used := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := goparser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		for _, imported := range file.Imports {
			if path := strings.Trim(imported.Path.Value, `"`); path == "os/exec" || path == "plugin" || path == "unsafe" && name != "resolve_linux.go" {
				t.Errorf("%s imports %s", name, path)
			}
		}
		for _, call := range writes(file) {
			allowed, ok := allowedWriters[name]
			switch {
			case ok && (allowed == nil || slices.Contains(allowed, call)):
				used[name] = true
			case slices.Contains(readers, call):
			default:
				t.Errorf("%s calls %s: only Apply and Revert may write", name, call)
			}
		}
	}
	for name := range allowedWriters {
		if _, err := os.Stat(name); err != nil || !used[name] {
			t.Errorf("%s is allowed to write, and does not", name)
		}
	}
}

func writes(file *ast.File) (calls []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok && slices.Contains(writers, selector.Sel.Name) {
			calls = append(calls, selector.Sel.Name)
		}
		return true
	})
	return calls
}
