// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	versionapi "github.com/containerd/containerd/api/services/version/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
	"github.com/evoseal/containment/internal/testenv"
)

// mustRefuse demands an error of the kind that names a way out, with these words in it, in a bounded time.
func mustRefuse(t *testing.T, c containerd.Config, words ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	begin := time.Now()
	ex, err := containerd.New(ctx, c)
	if err == nil {
		t.Error(errors.Join(errors.New("it was accepted"), ex.Close()))
		return
	}
	u, ok := errors.AsType[*executor.UnsupportedError](err)
	if !ok || !errors.Is(err, executor.ErrUnsupported) || u.Executor != "containerd" || u.Fix == "" {
		t.Errorf("not an error of the promised kind: %#v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is missing in: %v", w, err)
		}
	}
	if took := time.Since(begin); took > 14*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestNoDaemon(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "sock")
	mustRefuse(t, containerd.Config{Address: missing}, missing, "StartDaemon")
	mustRefuse(t, containerd.Config{Address: "relative/sock"}, "absolute")
	long := "/tmp/" + strings.Repeat("x", 200)
	mustRefuse(t, containerd.Config{Address: long}, "too long")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, containerd.Config{Address: file}, file)
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]containerd.Config{
		"RuntimeDir":         {RuntimeDir: "relative"},
		"StateDir":           {StateDir: "relative"},
		"Supervisor":         {Supervisor: "init"},
		"more than one":      {Root: containerd.Root{Image: "a", Directory: "/a"}},
		"Root.Image":         {Root: containerd.Root{Image: "--privileged"}},
		"Root.Reads":         {Root: containerd.Root{Image: "a", Reads: []string{"/usr"}}},
		"negative":           {Warm: containerd.Warm{Size: -1}},
		"DaemonPath[0]":      {DaemonPath: []containerd.PathMap{{From: "a", To: "/b"}}},
		"Namespace":          {Namespace: "a/b"},
		"Runtime.ConfigPath": {Runtime: containerd.Runtime{ConfigPath: "x"}},
	} {
		mustRefuse(t, c, want)
	}
}

func TestForbiddenSocket(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "unprivileged")
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, containerd.Config{Address: path}, path, "root", "group")
}

// versionServer is a daemon that can say its version and nothing else.
type versionServer struct {
	versionapi.UnimplementedVersionServer
	version string
	hang    bool
}

func (s versionServer) Version(ctx context.Context, _ *emptypb.Empty) (*versionapi.VersionResponse, error) {
	if s.hang {
		<-ctx.Done()
	}
	return &versionapi.VersionResponse{Version: s.version}, nil
}

func serve(t *testing.T, s versionServer) (socket string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	versionapi.RegisterVersionServer(server, s)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return path
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, word := range map[string]string{"1.6.19": "1.6.20", "1.5.0": "1.6.20", "": "1.6.20", "new": "1.6.20",
		"1.7.0": "server"} {
		mustRefuse(t, containerd.Config{Address: serve(t, versionServer{version: version})}, word)
	}
}

// A daemon that does not answer costs a bounded time: ours, or the caller's if that is shorter.
func TestHangingDaemon(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := containerd.New(ctx, containerd.Config{Address: serve(t, versionServer{hang: true})}); !errors.Is(err,
		executor.ErrUnsupported) {
		t.Error(err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	mustRefuse(t, containerd.Config{Address: serve(t, versionServer{hang: true})}, "no answer in time")
}

// A runtime with known breakouts is refused unless the danger is accepted by name, and then every result says so.
func TestOldRuntime(t *testing.T) {
	t.Parallel()
	at := daemon(t)
	c := at.config(containerd.Config{})
	c.DangerAllowOldRuntime = false
	mustRefuse(t, c, "1.1.5", "DangerAllowOldRuntime")
	ex := at.open(t, containerd.Config{})
	result, err := ex.Run(t.Context(), executor.Spec{Args: []string{"true"}, Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range result.Enforced {
		if strings.Contains(e.Note, "DangerAllowOldRuntime") {
			return
		}
	}
	t.Errorf("nothing says that the runtime is old: %+v", result.Enforced)
}

func TestNoRuntime(t *testing.T) {
	t.Parallel()
	c := daemon(t).config(containerd.Config{})
	c.Runtime.Name = "io.containerd.absent.v1"
	mustRefuse(t, c, "containerd-shim-absent-v1")
	c.Runtime = containerd.Runtime{Binary: "/nowhere/runc"}
	mustRefuse(t, c, "/nowhere/runc")
	c.Runtime = containerd.Runtime{Binary: "/usr/bin/crun"}
	mustRefuse(t, c, "crun")
	c.Runtime = containerd.Runtime{}
	c.Root.Image = "example.invalid/nothing@sha256:" + strings.Repeat("0", 64)
	mustRefuse(t, c, c.Root.Image, "nothing is ever pulled")
	c.Root = containerd.Root{Directory: t.TempDir()}
	mustRefuse(t, c, c.Root.Directory, "/box")
	left, err := os.ReadDir(c.RuntimeDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if e.Name() != "state" {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}
