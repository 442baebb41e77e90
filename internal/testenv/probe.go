// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// probeTimeout bounds one probe, so that a broken program fails a test instead of hanging it.
const probeTimeout = 20 * time.Second

func probeRoot() error {
	if uid := os.Getuid(); uid != 0 {
		return fmt.Errorf("the caller has uid %d, not 0", uid)
	}
	return nil
}

func probeUnprivileged() error {
	if os.Getuid() == 0 {
		return errors.New("the caller has uid 0")
	}
	return nil
}

// probeGo asks for a toolchain that runs; `go test` puts its own in front of PATH.
func probeGo() error { return runTool("go", "version") }

// probeGoCaches asks whether the go command can load a module for this caller: it must be able to write its build cache
// and to read its module cache. After a switch of the uid HOME often still names the other user's.
func probeGoCaches() error {
	path, err := findTool("go")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	build, modules, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err := os.MkdirAll(build, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(build, "testenv-")
	if err != nil {
		return err
	}
	_, err = os.ReadDir(modules)
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// systemPath comes before PATH: what a test runs should be what a sandbox with the standard search path sees, and the
// PATH of an ordinary Debian user lacks the sbin directories.
var systemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

func findTool(name string) (string, error) {
	for _, dir := range systemPath {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(name)
}

func runTool(name string, args ...string) error {
	path, err := findTool(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	return runQuietly(exec.CommandContext(ctx, path, args...))
}

// runQuietly runs the command and puts what it wrote into the error, since that is what names the obstacle.
func runQuietly(cmd *exec.Cmd) error {
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", cmd.Path, err, bytes.TrimSpace(out))
	}
	return nil
}

// probeRunsc asks for gVisor and a daemon that can start its shim. PATH alone counts: what the system has is often too old.
func probeRunsc() error {
	for _, name := range []string{"runsc", "containerd-shim-runsc-v1"} {
		if _, err := exec.LookPath(name); err != nil {
			return err
		}
	}
	path, err := exec.LookPath("containerd")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var major, minor int
	for _, word := range strings.Fields(string(out)) {
		if n, _ := fmt.Sscanf(strings.TrimPrefix(word, "v"), "%d.%d.", &major, &minor); n == 2 {
			break
		}
	}
	if major < 1 || major == 1 && minor < 7 {
		return fmt.Errorf("%s is %q, and a shim of gVisor needs 1.7", path, bytes.TrimSpace(out))
	}
	return nil
}
