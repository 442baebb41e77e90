// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// readSecret plants the same kind of file with three modes: the last two can be read by any other user as well.
func readSecret(s *scene) error {
	var paths, secrets []string
	for i, mode := range []os.FileMode{0o600, 0o644, 0o666} {
		secret := randomHex(16)
		path, err := s.plant(fmt.Sprintf("home/secret%d", i), secret, mode)
		if err != nil {
			return s.fault(err)
		}
		paths, secrets = append(paths, path), append(secrets, secret)
	}
	return s.mustNotRead(paths, secrets...)
}

// mustNotRead compares what comes out with secrets that only the host and the files know.
func (s *scene) mustNotRead(paths []string, secrets ...string) error {
	res, err := s.reach(s.spec("read", job{Paths: paths}))
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		if strings.Contains(res.Stdout.String(), secret) {
			return s.breach("a file of the host that was not declared was read; of %q came %q", paths, answers(res.Stdout.Bytes(), "read"))
		}
	}
	return nil
}

// readOriginal reads by absolute path what the rules keep out of the copy.
func readOriginal(s *scene) error {
	secret := randomHex(16)
	var paths []string
	for _, rel := range []string{"ws/.env", "ws/.git/config", "ws/plain.txt"} {
		path, err := s.plant(rel, secret, 0o644)
		if err != nil {
			return s.fault(err)
		}
		paths = append(paths, path)
	}
	return s.mustNotRead(paths, secret)
}

// readMagic goes through another process: its links are followed by the kernel, not by name.
func readMagic(s *scene) error {
	v, err := s.victim()
	if err != nil {
		return err
	}
	secret := randomHex(16)
	path, err := s.plant("magic/secret", secret, 0o644)
	if err != nil {
		return s.fault(err)
	}
	proc := "/proc/" + strconv.Itoa(v.pid)
	return s.mustNotRead([]string{proc + "/cwd/magic/secret", proc + "/root" + path}, secret)
}

// readThroughLink puts links to a secret into the workspace: the copy holds links, and what they name stays hidden.
func readThroughLink(s *scene) error {
	secret := randomHex(16)
	path, err := s.plant("linked/secret", secret, 0o644)
	if err != nil {
		return s.fault(err)
	}
	if err := os.Symlink(path, filepath.Join(s.ws, "file")); err != nil {
		return s.fault(err)
	}
	if err := os.Symlink(filepath.Dir(path), filepath.Join(s.ws, "dir")); err != nil {
		return s.fault(err)
	}
	return s.mustNotRead([]string{"file", "dir/secret", "./dir/../dir/secret"}, secret)
}
