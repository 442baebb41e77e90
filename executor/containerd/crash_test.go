// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	client "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
	"github.com/evoseal/containment/internal/testenv"
)

// hostMarker turns the re-executed test binary into a host program: "socket runtime-directory".
const hostMarker = "CONTAINMENT_TEST_HOST"

func TestMain(m *testing.M) {
	if where := os.Getenv(hostMarker); where != "" {
		hostProgram(strings.Fields(where))
	}
	if real := os.Getenv(shimMarker); real != "" {
		if err := startShim(real, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// hostProgram has boxes that wait and runs under way until it is killed.
func hostProgram(where []string) {
	config := containerd.Config{
		Address: where[0], Namespace: namespaceOf(where[0]), RuntimeDir: where[1], DangerAllowOldRuntime: true,
		Root: containerd.Root{Reads: hostReads}, Warm: containerd.Warm{Size: 2},
	}
	if config.Address == "managed" {
		config.Address, config.Managed, config.Namespace = "", true, filepath.Base(filepath.Dir(where[1]))
	}
	ex, err := containerd.New(context.Background(), config)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	workspace, err := os.MkdirTemp(where[1], "workspace-")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for range 3 {
		go func() {
			spec := executor.Spec{Args: []string{"sh", "-c", "sleep 291 & sleep 291"}, Workspace: workspace}
			if _, err := ex.Run(context.Background(), spec); err != nil {
				fmt.Println(err)
			}
		}()
	}
	fmt.Println("ready")
	select {}
}

// kill starts a host program, lets it work for a while and kills it.
func kill(t *testing.T, where string, after time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = []string{hostMarker + "=" + where, "PATH=" + executor.DefaultPath, "TMPDIR=" + os.TempDir()}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var word string
	if _, err := fmt.Fscanln(out, &word); err != nil || word != "ready" {
		t.Errorf("host program: %q, %v", word, err)
	}
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// census lists what there is of boxes anywhere.
func census(t *testing.T, socket, runtimeDir string) (found []string) {
	t.Helper()
	c, err := client.New(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := namespaces.WithNamespace(t.Context(), namespaceOf(socket))
	list, err := c.ContainerService().List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		found = append(found, "container "+one.ID)
	}
	held, err := c.LeasesService().List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range held {
		found = append(found, "lease "+one.ID)
	}
	err = c.SnapshotService("overlayfs").Walk(ctx, func(_ context.Context, one snapshots.Info) error {
		if one.Kind != snapshots.KindCommitted { // those are images
			found = append(found, "snapshot "+one.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{
		filepath.Join(runtimeDir, "containment-*"), filepath.Join(runtimeDir, "state", "boxes-*", "*"),
		filepath.Join(runtimeDir, "state", "executors", "*"),
	} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, names...)
	}
	found = append(found, groups(t, namespaceOf(socket))...)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, filepath.Dir(socket)+"/state/") && !strings.Contains(line, "/shm") {
			found = append(found, line)
		}
	}
	notes, err := filepath.Glob("/run/containerd/run*/" + namespaceOf(socket) + "/*") // of runc and runsc
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, notes...)
	for _, pid := range processes(t, socket) {
		found = append(found, "process "+pid)
	}
	return found
}

// dirtyIDs are the locks of id ranges that nobody gave back, and in which a box below a directory was. After a kill
// that is as it must be: whoever takes such a range next looks at it first.
func dirtyIDs(t *testing.T, runtimeDir string) (found []string) {
	t.Helper()
	names, err := filepath.Glob("/run/containment/containerd/ids/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(text), "1"+runtimeDir+"/") {
			found = append(found, "ids "+name)
		}
	}
	return found
}

// processes are the shims of a daemon, and payloads of hostProgram.
func processes(t *testing.T, socket string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil {
			continue
		}
		text := strings.ReplaceAll(string(line), "\x00", " ")
		if strings.Contains(text, "shim") && strings.Contains(text, socket) || strings.Contains(text, "sleep 291 ") {
			found = append(found, e.Name()+" "+text)
		}
	}
	return found
}

// Whatever a host program was doing when it was killed: its payloads die at once, and the next executor removes the
// rest.
func TestHostKilled(t *testing.T) {
	socket := daemon(t)
	runtimeDir := filepath.Join(shortDir(t), "rt")
	swept := 0
	moments := []time.Duration{0, 60 * time.Millisecond, 200 * time.Millisecond, 2 * time.Second}
	for len(moments) < *stressKills {
		moments = append(moments, rand.N(2*time.Second))
	}
	for _, after := range moments {
		kill(t, socket+" "+runtimeDir, after)
		left, _ := filepath.Glob(filepath.Join(runtimeDir, "state", "boxes-*", "*"))
		swept += len(left)
		ex := open(t, socket, containerd.Config{RuntimeDir: runtimeDir})
		if err := ex.Close(); err != nil {
			t.Fatal(err)
		}
		if found := census(t, socket, runtimeDir); len(found) > 0 {
			t.Errorf("%v after the start: left behind: %q", after, found)
		}
	}
	if swept == 0 {
		t.Error("no killed host program left a box: the test did not hit one")
	}
}

// A private daemon of a program that was killed is taken over and ended, with the boxes that it had.
func TestManaged(t *testing.T) {
	testenv.Need(t, "root")
	testenv.Need(t, "containerd")
	testenv.Need(t, "runc")
	dir := shortDir(t)
	runtimeDir, namespace := filepath.Join(dir, "rt"), filepath.Base(dir)
	kill(t, "managed "+runtimeDir, 300*time.Millisecond)
	config := containerd.Config{
		Managed: true, Namespace: namespace, DangerAllowOldRuntime: true, RuntimeDir: runtimeDir,
		Root: containerd.Root{Reads: hostReads},
	}
	ex, err := containerd.New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	result, err := ex.Run(t.Context(), executor.Spec{Args: []string{"sh", "-c", "exit 4"}, Workspace: t.TempDir()})
	if err != nil || result.ExitCode != 4 {
		t.Errorf("%+v, %v", result, err)
	}
	if err := ex.Close(); err != nil {
		t.Error(err)
	}
	for _, p := range processes(t, runtimeDir) {
		t.Errorf("left behind: process %s", p)
	}
	left, err := filepath.Glob(filepath.Join(runtimeDir, "containment-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if left := groups(t, namespace); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// groups are the cgroups of the boxes of a namespace.
func groups(t *testing.T, namespace string) (found []string) {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/*/" + namespace + "/containment-*",
		"/sys/fs/cgroup/" + namespace + "/containment-*"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, names...)
	}
	return found
}
