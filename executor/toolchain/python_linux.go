// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// describePython prints where the interpreter and its library are. A shim, such as pyenv's, answers for what it starts.
const describePython = `import json, sys, sysconfig
print(json.dumps({
    "version": ".".join(map(str, sys.version_info[:3])), "major": sys.version_info[0], "executable": sys.executable,
    "prefix": sys.prefix, "base": sys.base_prefix, "exec": sys.base_exec_prefix,
    "library": [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")],
}))`

type pythonAnswer struct {
	Version, Executable, Prefix, Base, Exec string
	Major                                   int
	Library                                 []string
}

// Python finds Python 3 on the host. Errors match [executor.ErrUnsupported] if there is none that a run can use, or
// [ErrConfig].
func Python(ctx context.Context, c PythonConfig) (*Toolchain, error) {
	if err := absolute("Program", c.Program, true); err != nil {
		return nil, err
	}
	env := map[string]string{
		"PYTHONDONTWRITEBYTECODE": "1", // the library is read-only, and the copy of the workspace is thrown away
		"PYTHONNOUSERSITE":        "1",
		// PYTHONHASHSEED is left alone: a fixed one would hide what depends on the order of sets.
	}
	for i, dir := range c.Packages {
		field := fmt.Sprintf("Packages[%d]", i)
		if err := absolute(field, dir, false); err != nil {
			return nil, err
		}
		if strings.ContainsRune(dir, ':') {
			return nil, fault(field, "%q must not contain ':'", dir)
		}
		if err := errors.Join(trusted(dir), reachable(dir)); err != nil {
			return nil, fault(field, "%v", err)
		}
	}
	if len(c.Packages) > 0 {
		env["PYTHONPATH"] = strings.Join(c.Packages, ":")
	}
	t := &Toolchain{Name: "python", Env: env}
	const install = "install python3 where everybody can read it, such as with apt-get install python3"
	err := find(ctx, "python3", c.Program, install, func(program string) error {
		out, err := probe(ctx, program, "-I", "-c", describePython)
		if err != nil {
			return err
		}
		var a pythonAnswer
		if err := json.Unmarshal(out, &a); err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		if a.Major != 3 {
			return fmt.Errorf("%s is Python %s: it must be Python 3", program, a.Version)
		}
		places := append(a.places(), c.Packages...)
		for _, p := range append(places, a.Executable) {
			if err := errors.Join(trusted(p), reachable(p)); err != nil {
				return err
			}
		}
		t.Version, t.Program, t.Mounts = a.Version, a.Executable, mounts(places...)
		t.Path = searchPath("python3", filepath.Dir(a.Executable))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// places are what the interpreter needs. A prefix of its own is needed as a whole; of the system's only the program and
// its library. A virtual environment is there as well as what it was made from.
func (a pythonAnswer) places() []string {
	list := append([]string{a.Executable}, a.Library...)
	for _, prefix := range []string{a.Prefix, a.Base, a.Exec} {
		if !systemPrefix(prefix) {
			list = append(list, prefix)
		}
	}
	return list
}

// systemPrefix reports whether a prefix is shared by everything that is installed.
func systemPrefix(prefix string) bool {
	switch resolve(filepath.Clean(prefix)) {
	case "/", "/usr", "/usr/local", "/opt", "/home", "/root":
		return true
	}
	return prefix == ""
}
