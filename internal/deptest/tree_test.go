// SPDX-License-Identifier: Apache-2.0

package deptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evoseal/containment/internal/testenv"
)

const (
	module = "github.com/evoseal/containment"
	top    = "../.." // of the tree, seen from this package
)

// walk yields the slash-separated path of every regular file of the tree, whichever module it belongs to.
func walk(t *testing.T, visit func(name string, data []byte)) {
	t.Helper()
	tree := os.DirFS(top)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		data, err := fs.ReadFile(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another test's temporary file
		}
		if err == nil {
			visit(name, data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// goFile is one parsed file of the tree.
type goFile struct {
	name string // slash-separated, from the top
	fset *token.FileSet
	ast  *ast.File
	data []byte
}

func (f goFile) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.name, f.fset.Position(n.Pos()).Line)
}

// imported returns the name under which the file knows the package; "" if it does not import it.
func (f goFile) imported(importPath string) string {
	for _, spec := range f.ast.Imports {
		if strings.Trim(spec.Path.Value, `"`) != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return strings.TrimPrefix(path.Base(importPath), "go-")
	}
	return ""
}

func parse(t *testing.T, name string, data []byte) goFile {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return goFile{name: name, fset: fset, ast: file, data: data}
}

// goFiles parses every Go file that a build could use. What lies in testdata is data.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	walk(t, func(name string, data []byte) {
		if path.Ext(name) == ".go" && !slices.Contains(strings.Split(name, "/"), "testdata") {
			files = append(files, parse(t, name, data))
		}
	})
	if len(files) < 10 {
		t.Fatalf("found only %d Go files; is %s the top of the tree?", len(files), top)
	}
	return files
}

// listedPackage is what we read of `go list -json`.
type listedPackage struct {
	ImportPath string
	Imports    []string
	ForTest    string
	Standard   bool
	Module     *struct{ Path string }
}

// goList runs `go list -json` over the released root module alone, for a target system.
func goList(t *testing.T, goos string, args ...string) []listedPackage {
	t.Helper()
	return goListIn(t, "", goos, args...)
}

// goListIn does it in the module of a directory of the tree.
func goListIn(t *testing.T, dir, goos string, args ...string) []listedPackage {
	t.Helper()
	testenv.Need(t, "go-caches")
	args = append([]string{"list", "-json=ImportPath,Imports,ForTest,Standard,Module"}, args...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join(filepath.FromSlash(top), filepath.FromSlash(dir))
	// A consumer sees no work file; a test must not edit go.mod, nor ask git about a checkout of somebody else's.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false",
		"GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%v: %v\n%s", cmd, err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	var packages []listedPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var p listedPackage
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return packages
}
