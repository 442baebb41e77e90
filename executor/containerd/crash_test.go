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
)

// hostMarker turns the re-executed test binary into a host program at a site. The socket "managed" is that of a
// daemon of its own.
const hostMarker = "CONTAINMENT_TEST_HOST"

// hostProgram has boxes that wait and runs under way until it is killed.
func hostProgram(at site) {
	config := at.config(containerd.Config{Root: containerd.Root{Reads: hostReads}, Warm: containerd.Warm{Size: 2}})
	if at.socket == "managed" {
		config.Address, config.Managed = "", true
	}
	ex, err := containerd.New(context.Background(), config)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	workspace, err := os.MkdirTemp(at.dir, "workspace-")
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
func kill(t *testing.T, at site, after time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = []string{hostMarker + "=" + at.String(), "PATH=" + executor.DefaultPath, "TMPDIR=" + os.TempDir()}
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
func census(t *testing.T, at site) (found []string) {
	t.Helper()
	c, err := client.New(at.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := namespaces.WithNamespace(t.Context(), at.namespace)
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
		filepath.Join(at.dir, "containment-*"), filepath.Join(at.dir, "state", "boxes-*", "*"),
		filepath.Join(at.dir, "state", "executors", "*"),
	} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, names...)
	}
	found = append(found, groups(t, at)...)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, filepath.Dir(at.socket)+"/state/") && strings.Contains(line, "/"+at.namespace+"/") {
			found = append(found, line)
		}
	}
	notes, err := filepath.Glob("/run/containerd/run*/" + at.namespace + "/*") // of runc and runsc
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, notes...)
	for _, pid := range processes(t, at) {
		found = append(found, "process "+pid)
	}
	return found
}

// dirtyIDs are the locks of id ranges that nobody gave back, and in which a box below a directory was. After a kill
// that is as it must be: whoever takes such a range next looks at it first.
func dirtyIDs(t *testing.T, at site) (found []string) {
	t.Helper()
	names, err := filepath.Glob("/run/containment/containerd/ids/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(text), "1"+at.dir+"/") {
			found = append(found, "ids "+name)
		}
	}
	return found
}

// processes are what is alive of a site: shims, private daemons, and whatever is in a group of a box.
func processes(t *testing.T, at site) (found []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil || len(line) == 0 { // dead, perhaps not yet waited for
			continue
		}
		text := strings.ReplaceAll(string(line), "\x00", " ")
		groups, _ := os.ReadFile("/proc/" + e.Name() + "/cgroup")
		if strings.Contains(text, " -namespace "+at.namespace+" ") || strings.Contains(text, at.dir+"/") ||
			strings.Contains(string(groups), "/"+at.namespace+"/") {
			found = append(found, e.Name()+" "+text)
		}
	}
	return found
}

// Whatever a host program was doing when it was killed: its payloads die at once, and the next executor removes the
// rest.
func TestHostKilled(t *testing.T) {
	t.Parallel()
	at := daemon(t)
	swept := 0
	moments := []time.Duration{0, 60 * time.Millisecond, 200 * time.Millisecond, 2 * time.Second}
	for len(moments) < *stressKills {
		moments = append(moments, rand.N(2*time.Second))
	}
	for _, after := range moments {
		kill(t, at, after)
		left, _ := filepath.Glob(filepath.Join(at.dir, "state", "boxes-*", "*"))
		swept += len(left)
		ex := at.open(t, containerd.Config{})
		if err := ex.Close(); err != nil {
			t.Fatal(err)
		}
		if found := census(t, at); len(found) > 0 {
			t.Errorf("%v after the start: left behind: %q", after, found)
		}
	}
	if swept == 0 {
		t.Error("no killed host program left a box: the test did not hit one")
	}
}

// A private daemon of a program that was killed is taken over and ended, with the boxes that it had.
func TestManaged(t *testing.T) {
	t.Parallel()
	needDaemon(t)
	at := newSite(t, "managed")
	kill(t, at, 300*time.Millisecond)
	config := at.config(containerd.Config{Managed: true, Root: containerd.Root{Reads: hostReads}})
	config.Address = ""
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
	for _, p := range processes(t, at) {
		t.Errorf("left behind: process %s", p)
	}
	left, err := filepath.Glob(filepath.Join(at.dir, "containment-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if left := groups(t, at); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// groups are the cgroups of a site. Without an executor there are none.
func groups(t *testing.T, at site) (found []string) {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/*/" + at.namespace, "/sys/fs/cgroup/" + at.namespace} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, names...)
	}
	return found
}
