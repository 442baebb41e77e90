// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/evoseal/containment/executor/containerd/internal/box"
)

// supervisor is the program of process 1 on the host. There is one copy, and for each range of ids a directory with links
// to it: the directory belongs to the root of the box and nobody else may enter it, so that a payload cannot read the host
// program, without a copy for each box.
type supervisor struct {
	dir string // 0711
	box.Installed
}

// installSupervisor puts it below dir, a directory of ours.
func installSupervisor(dir, program string) (*supervisor, error) {
	s := &supervisor{dir: dir}
	all := filepath.Join(dir, "all")
	for _, d := range []struct {
		path string
		mode fs.FileMode
	}{{dir, 0o711}, {all, 0o700}} {
		if err := os.Mkdir(d.path, d.mode); err != nil {
			return nil, err
		}
	}
	var err error
	if s.Installed, err = box.Install(all, program, -1); err != nil {
		return nil, err
	}
	// Nobody gets here but through the directories of the boxes, whose owners are strangers to the files.
	return s, filepath.WalkDir(all, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == all {
			return err
		}
		return os.Chmod(path, 0o555)
	})
}

// forSlot returns the directory of a range of ids.
func (s *supervisor) forSlot(first uint32) (string, error) {
	dir := filepath.Join(s.dir, strconv.FormatUint(uint64(first), 10))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	files, err := os.ReadDir(filepath.Join(s.dir, "all"))
	if err != nil {
		return "", err
	}
	building := dir + ".new"
	if err := os.RemoveAll(building); err != nil { // the slot is ours alone
		return "", err
	}
	err = os.Mkdir(building, 0o700)
	for _, f := range files {
		err = errors.Join(err, os.Link(filepath.Join(s.dir, "all", f.Name()), filepath.Join(building, f.Name())))
	}
	if err == nil {
		err = errors.Join(os.Chmod(building, 0o500), os.Chown(building, int(first), int(first)), os.Rename(building, dir))
	}
	return dir, err
}
