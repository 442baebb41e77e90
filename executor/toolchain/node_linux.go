// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
)

const describeNode = `JSON.stringify({version: process.version, executable: process.execPath})`

// Node finds Node.js on the host. Errors match [executor.ErrUnsupported] if there is none that a run can use, or
// [ErrConfig]. It sets no variable, and a run inherits none: NODE_OPTIONS and NODE_PATH of the host have no effect
// inside.
func Node(ctx context.Context, c NodeConfig) (*Toolchain, error) {
	if err := absolute("Program", c.Program, true); err != nil {
		return nil, err
	}
	t := &Toolchain{Name: "node"}
	const install = "install Node.js where everybody can read it, such as with apt-get install nodejs"
	err := find(ctx, "node", c.Program, install, func(program string) error {
		out, err := probe(ctx, program, "-p", describeNode)
		if err != nil {
			return err
		}
		var a struct{ Version, Executable string }
		if err := json.Unmarshal(out, &a); err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		places := nodePlaces(a.Executable)
		for _, p := range append(places, a.Executable) {
			if err := errors.Join(trusted(p), reachable(p)); err != nil {
				return err
			}
		}
		t.Version, t.Program, t.Mounts = a.Version, a.Executable, mounts(places...)
		t.Path = searchPath("node", filepath.Dir(a.Executable))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// nodePlaces are the program, and what lies beside it if that is Node's alone: a distribution of its own has its
// library in lib. Debian's has a part of it in /usr/share/nodejs, which may be missing.
func nodePlaces(program string) []string {
	list := []string{program}
	bin := filepath.Dir(program)
	if prefix := filepath.Dir(bin); filepath.Base(bin) == "bin" && !systemPrefix(prefix) {
		return append(list, prefix)
	}
	if _, err := filepath.EvalSymlinks("/usr/share/nodejs"); err == nil {
		list = append(list, "/usr/share/nodejs")
	}
	return list
}
