// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
	"github.com/evoseal/containment/executor/executortest"
	"github.com/evoseal/containment/internal/testenv"
)

// shimMarker turns the re-executed test binary into the start step of gVisor's shim; its value is the real one.
const shimMarker = "CONTAINMENT_TEST_SHIM"

const runscShim = "containerd-shim-runsc-v1"

// gvisorConfig is what an operator would write.
const gvisorConfig = `[runsc_config]
platform = "systrap"
network = "none"
`

// gvisor starts a daemon that can make gVisor's boxes, and returns what an executor needs for it. GVISOR.md is the
// recipe.
func gvisor(t *testing.T) (at site, config containerd.Config) {
	t.Helper()
	testenv.Need(t, "runsc") // first: only what every host can have must be there in one of the passes
	testenv.Need(t, "root")
	dir := shortDir(t)
	path := os.Getenv("PATH")
	if !canProtect(t) {
		path = wrapShim(t, dir) + ":" + path
	}
	file := filepath.Join(dir, "runsc.toml")
	if err := os.WriteFile(file, []byte(gvisorConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	config = containerd.Config{
		Runtime: containerd.Runtime{Name: containerd.Runsc, ConfigPath: file}, Root: containerd.Root{Reads: hostReads},
	}
	if where := os.Getenv(siteMarker); where != "" { // a test that executes itself once more
		return parseSite(where), config
	}
	d := startDaemon(t, containerd.DaemonConfig{Dir: filepath.Join(dir, "d"), Path: path})
	at = newSite(t, d.Socket())
	t.Setenv(siteMarker, at.String())
	return at, config
}

// canProtect reports whether a process may be taken out of the kernel's choice of victims, as gVisor's shim does with
// itself.
func canProtect(t *testing.T) bool {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// wrapShim puts a shim into a directory whose start step leaves that out.
func wrapShim(t *testing.T, dir string) string {
	t.Helper()
	real, err := exec.LookPath(runscShim)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`#!/bin/sh
for last; do :; done
[ "$last" = start ] || exec %s "$@"
exec env %s=%s %s "$@"
`, real, shimMarker, real, self)
	bin := filepath.Join(dir, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o755),
		os.WriteFile(filepath.Join(bin, runscShim), []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	return bin
}

// startShim does what the start step of a shim does: it gives the real one a socket, and tells the daemon where that
// is.
func startShim(real string, args []string) error {
	value := map[string]string{}
	for i, a := range args[:len(args)-1] {
		value[a] = args[i+1]
	}
	sum := sha256.Sum256([]byte(filepath.Join(value["-address"], value["-namespace"], value["-id"])))
	path := fmt.Sprintf("/run/containerd/s/%x", sum)
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	socket, err := l.File()
	if err != nil {
		return err
	}
	cmd := exec.Command(real, "-namespace", value["-namespace"], "-address", value["-address"], "-id", value["-id"])
	cmd.ExtraFiles = []*os.File{socket}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	address := "unix://" + path
	err = errors.Join(os.WriteFile("address", []byte(address), 0o600),
		os.WriteFile("shim.pid", fmt.Append(nil, cmd.Process.Pid), 0o600))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"version": 2, "address": address, "protocol": "ttrpc"})
}

// A kernel of its own is promised only on evidence from inside: another boot id than ours, beside a word that only this
// run knows.
func TestGVisor(t *testing.T) {
	at, config := gvisor(t)
	ex := at.open(t, config)
	if !ex.Capabilities().Has(executor.OwnKernel) {
		t.Fatalf("capabilities %v", ex.Capabilities())
	}
	nonce := "nonce-" + filepath.Base(shortDir(t))
	spec := executor.Spec{Args: []string{"sh", "-c", "echo " + nonce + "; cat /proc/sys/kernel/random/boot_id; exit 9"}}
	lines := strings.Split(mustExit(t, ex, spec, 9).Stdout.String(), "\n")
	ours, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) < 2 || lines[0] != nonce || len(lines[1]) != 36 || lines[1] == strings.TrimSpace(string(ours)) {
		t.Errorf("inside: %q, the host has %q", lines, ours)
	}
	if _, err := containerd.New(t.Context(), containerd.Config{
		Address: at.socket, RuntimeDir: at.dir,
		Runtime: containerd.Runtime{Name: containerd.Runsc, ConfigPath: "/nowhere/runsc.toml"},
	}); !errors.Is(err, executor.ErrUnsupported) {
		t.Errorf("a missing configuration: %v", err)
	}
}

// The whole suite in gVisor.
func TestGVisorConformance(t *testing.T) {
	at, config := gvisor(t)
	executortest.Run(t, func(t *testing.T) executor.Executor { return at.open(t, config) })
	at.open(t, config) // removes what the last case killed
}
