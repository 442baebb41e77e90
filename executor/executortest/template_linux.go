// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// payloadName is the file that every workspace of the suite holds: a copy of this binary.
const payloadName = "payload"

// template is the one copy of the running binary that all scenes link to. It exists while anybody holds it: the binary
// may have 15 MB and there are some hundred runs.
var template struct {
	sync.Mutex
	holders int
	dir     string
}

// holdTemplate returns the path of the copy and a function that gives it back.
func holdTemplate() (path string, release func(), err error) {
	template.Lock()
	defer template.Unlock()
	if template.holders == 0 {
		dir, err := makeTemplate()
		if err != nil {
			return "", nil, err
		}
		template.dir = dir
	}
	template.holders++
	return filepath.Join(template.dir, payloadName), sync.OnceFunc(releaseTemplate), nil
}

// releaseTemplate removes the copy with its last holder.
func releaseTemplate() {
	template.Lock()
	defer template.Unlock()
	if template.holders--; template.holders == 0 {
		_ = os.RemoveAll(template.dir)
	}
}

// keepTemplate holds the copy over many cases. If it cannot be made, each case says so by itself.
func keepTemplate() (release func()) {
	_, release, err := holdTemplate()
	if err != nil {
		return func() {}
	}
	return release
}

// makeTemplate copies the running binary, not the file under its name: that may have been replaced since.
func makeTemplate() (string, error) {
	dir, err := os.MkdirTemp("", "executortest-bin-")
	if err != nil {
		return "", err
	}
	err = os.Chmod(dir, 0o755)
	to := filepath.Join(dir, payloadName)
	if err == nil {
		err = copyFile("/proc/self/exe", to, 0o755)
	}
	if err == nil {
		err = trim(to)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("executortest: copy of the running binary: %w", err)
	}
	return dir, nil
}

// trim cuts symbols and debugging information off: a third of a Go binary, which the kernel does not load and every run
// would copy. A binary that has something behind its section headers may read that itself, and stays whole.
func trim(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var h elf.Header64
	if err := binary.Read(f, binary.NativeEndian, &h); err != nil {
		return err
	}
	file, err := elf.NewFile(f)
	if err != nil {
		return err
	}
	var loaded int64
	for _, p := range file.Progs {
		loaded = max(loaded, int64(p.Off+p.Filesz))
	}
	known := int64(h.Shoff) + int64(h.Shnum)*int64(h.Shentsize)
	for _, s := range file.Sections {
		if s.Type != elf.SHT_NOBITS {
			known = max(known, int64(s.Offset+s.FileSize))
		}
	}
	if fi, err := f.Stat(); err != nil || fi.Size() > known || loaded == 0 || loaded > fi.Size() {
		return err
	}
	h.Shoff, h.Shnum, h.Shstrndx = 0, 0, 0
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return errors.Join(binary.Write(f, binary.NativeEndian, &h), f.Truncate(loaded))
}

// copyFile copies a regular file and gives the copy exactly this mode, whatever the umask is.
func copyFile(from, to string, mode os.FileMode) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Chmod(to, mode)
}
