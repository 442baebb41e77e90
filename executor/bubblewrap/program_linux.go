// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
)

const versionTime = 5 * time.Second

// findProgram returns the path of a bubblewrap that is new enough.
func findProgram(ctx context.Context, path string) (string, error) {
	fix := "install the package bubblewrap, version 0.8 or newer, or set Config.Path"
	if path == "" {
		if path = lookUp("bwrap"); path == "" {
			return "", &StartError{Reason: "there is no program bwrap in " + executor.DefaultPath, Fix: fix}
		}
	}
	if !filepath.IsAbs(path) {
		return "", &StartError{Reason: fmt.Sprintf("Config.Path %q is not absolute", path), Fix: fix}
	}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env, cmd.Dir, cmd.WaitDelay = []string{}, "/", time.Second
	out, err := cmd.Output()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &StartError{Reason: "there is no program " + path, Fix: fix}
	case err != nil:
		return "", &StartError{Reason: fmt.Sprintf("%s --version: %v", path, err), Fix: fix}
	}
	return path, checkVersion(string(out))
}

// lookUp searches the path of runs, not the caller's.
func lookUp(name string) string {
	for _, dir := range filepath.SplitList(executor.DefaultPath) {
		path := filepath.Join(dir, name)
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// checkVersion demands --disable-userns and --size, the last of which came with 0.8.
func checkVersion(output string) error {
	const major, minor = 0, 8
	var gotMajor, gotMinor int
	text := strings.TrimSpace(output)
	if n, err := fmt.Sscanf(text, "bubblewrap %d.%d", &gotMajor, &gotMinor); n != 2 || err != nil {
		return &StartError{
			Reason: fmt.Sprintf("a program that calls itself %.40q is not bubblewrap", text), Fix: "set Config.Path to bwrap",
		}
	}
	if gotMajor < major || gotMajor == major && gotMinor < minor {
		return &StartError{
			Reason: fmt.Sprintf("%s is too old, it cannot forbid nested user namespaces", text),
			Fix:    fmt.Sprintf("install version %d.%d or newer", major, minor),
		}
	}
	return nil
}
