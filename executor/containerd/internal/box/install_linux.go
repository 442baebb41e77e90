// SPDX-License-Identifier: Apache-2.0

package box

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evoseal/containment/executor/containerd/internal/box/supervisor"
)

// Form says which binary is the supervisor.
type Form string

// The forms.
const (
	FormInstalled Form = "installed" // the small program of cmd/containment-init
	FormStatic    Form = "static"    // a copy of the running program
	FormDynamic   Form = "dynamic"   // a copy of the running program with its loader and libraries
)

// Installed is a supervisor that lies in a directory of the host.
type Installed struct {
	Form   Form
	Digest string   // "sha256:…" over the names and contents of all files
	Args   []string // of process 1, if the directory is mounted at SupervisorDir
	Size   int64    // bytes of all files
}

// Names in the directory. The files of libraries have their own names.
const (
	programName = "containment-init"
	loaderName  = "loader"
)

// ErrProgram: a program cannot be a supervisor.
var ErrProgram = errors.New("box: unfit supervisor")

// Install puts what is needed into dir, an empty directory of the caller, without any below it: a copy of the program at
// path, or if that is empty of the running program, with its loader and its libraries if it is linked with any. The files
// get mode 0500 and, if owner is not negative, that uid and gid.
//
// A program at path must be static: build cmd/containment-init with CGO_ENABLED=0. Else the error is an [ErrProgram].
func Install(dir, path string, owner int) (Installed, error) {
	in := &installation{dir: dir, owner: owner, sum: sha256.New()}
	from := path
	if path == "" {
		from = "/proc/self/exe" // also when the file was removed, as after "go run"
	}
	loader, err := interpreter(from)
	if err != nil {
		return Installed{}, err
	}
	if err := in.add(from, programName); err != nil {
		return Installed{}, err
	}
	program := filepath.Join(SupervisorDir, programName)
	in.Args, in.Form = []string{program, supervisor.Marker}, FormStatic
	switch {
	case path != "" && loader != "":
		return Installed{}, fmt.Errorf("%w: %s needs the loader %s; build it with CGO_ENABLED=0", ErrProgram, path, loader)
	case path != "":
		in.Form = FormInstalled
	case loader != "":
		if err := in.libraries(loader); err != nil {
			return Installed{}, err
		}
		in.Form = FormDynamic
		in.Args = []string{
			filepath.Join(SupervisorDir, loaderName), "--library-path", SupervisorDir, "--argv0", programName, program,
			supervisor.Marker,
		}
	}
	in.Digest = "sha256:" + hex.EncodeToString(in.sum.Sum(nil))
	return in.Installed, nil
}

// interpreter returns the loader that a program names, or nothing if it is static.
func interpreter(path string) (string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrProgram, path, err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		name, err := io.ReadAll(io.LimitReader(p.Open(), 4<<10))
		return strings.TrimRight(string(name), "\x00"), err
	}
	return "", nil
}

type installation struct {
	Installed
	dir   string
	owner int
	sum   hash.Hash
}

// add copies one file.
func (in *installation) add(from, name string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(filepath.Join(in.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o500)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	fmt.Fprintf(in.sum, "%q\n", name)
	n, err := io.Copy(io.MultiWriter(dst, in.sum), src)
	in.Size += n
	if err == nil && in.owner >= 0 {
		err = dst.Chown(in.owner, in.owner)
	}
	if err == nil {
		err = dst.Chmod(0o500)
	}
	return err
}

// libraries adds the loader and whatever it has mapped into this process: exactly what this program runs with.
func (in *installation) libraries(loader string) error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(loader)
	if err != nil {
		return err
	}
	if err := in.add(loader, loaderName); err != nil {
		return err
	}
	for _, path := range mapped(string(maps)) {
		if path == self || path == real {
			continue
		}
		name, err := soname(path)
		if err == nil {
			err = in.add(path, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mapped returns the files that are mapped to be executed, sorted.
func mapped(maps string) (list []string) {
	for line := range strings.Lines(maps) {
		const fields = 6 // address, permissions, offset, device, inode, path
		f := strings.SplitN(strings.Join(strings.Fields(line), " "), " ", fields)
		if len(f) == fields && strings.Contains(f[1], "x") && strings.HasPrefix(f[5], "/") {
			list = append(list, f[5])
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// soname returns the name by which others need a library.
func soname(path string) (string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w: %s is mapped and is no library: %w", ErrProgram, path, err)
	}
	defer file.Close()
	names, err := file.DynString(elf.DT_SONAME)
	if err != nil || len(names) == 0 {
		return filepath.Base(path), err
	}
	return filepath.Base(names[0]), nil
}
