// SPDX-License-Identifier: Apache-2.0

//go:build containerd

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd"
)

const (
	byRunc = "runc run"
	byCtr  = "ctr run"
)

// reads are what /bin/true needs, and what a run with a shell would.
var reads = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64"}

// withDaemon ends the daemon after the executor.
type withDaemon struct {
	*containerd.Executor
	daemon *containerd.Daemon
}

func (w withDaemon) Close() error { return errors.Join(w.Executor.Close(), w.daemon.Close()) }

// containerSubjects are boxes made for each run, and two peers over the same daemon and runtime with the same kinds of
// namespaces, mounts and limits. The peers have no filter, no ids and no supervisor of their own.
func containerSubjects(
	ctx context.Context, dir string, ours func(string, string, executor.Executor, error) subject,
) ([]subject, error) {
	daemon, err := containerd.StartDaemon(ctx, containerd.DaemonConfig{Dir: filepath.Join(dir, "daemon")})
	if errors.Is(err, executor.ErrUnsupported) {
		return []subject{{name: "containerd", why: err}}, nil
	}
	if err != nil {
		return nil, err
	}
	ex, err := containerd.New(ctx, containerd.Config{
		Address: daemon.Socket(), RuntimeDir: filepath.Join(dir, "runtime"), Root: containerd.Root{Reads: reads},
		DangerAllowOldRuntime: true, // a distribution's; it runs nothing but /bin/true here
	})
	if err != nil {
		return []subject{{name: "containerd", why: errors.Join(err, daemon.Close())}}, nil
	}
	box := ours("containerd", byCtr, withDaemon{ex, daemon}, nil)
	bundle, err := makeBundle(filepath.Join(dir, "bundle"))
	if err != nil {
		return nil, err // ours is closed by the caller
	}
	return []subject{
		named(byRunc, []string{"runc", "--root", filepath.Join(dir, "runc"), "run", "--bundle", bundle}),
		named(byCtr, []string{"ctr", "--address", daemon.Socket(), "--namespace", "peer", "run", "--rm", "--config",
			filepath.Join(bundle, "config.json")}),
		box,
	}, nil
}

// named is a command whose last argument is a name that no other run has.
func named(name string, args []string) subject {
	if _, err := exec.LookPath(args[0]); err != nil {
		return subject{name: name, why: err}
	}
	var count atomic.Int64
	return subject{name: name, run: func(ctx context.Context) error {
		id := fmt.Sprintf("peer-%d-%d", os.Getpid(), count.Add(1))
		cmd := exec.CommandContext(ctx, args[0], append(args[1:len(args):len(args)], id)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}}
}

// makeBundle writes a root that holds mount points and a specification with what a box has by default. Without a path of its
// own each run gets a cgroup named after it.
func makeBundle(dir string) (string, error) {
	root := filepath.Join(dir, "rootfs")
	type object = map[string]any
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "size=65536", "mode=755"}},
	}
	for _, target := range []string{"/dev/shm", "/tmp", "/box"} {
		mounts = append(mounts, object{
			"destination": target, "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "nodev", "size=33554432"},
		})
	}
	points := []string{"proc", "dev", "tmp", "box"}
	for _, path := range reads {
		fi, err := os.Lstat(path)
		switch {
		case err != nil:
			continue
		case fi.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err == nil {
				err = errors.Join(os.MkdirAll(root, 0o755), os.Symlink(to, filepath.Join(root, path)))
			}
			if err != nil {
				return "", err
			}
			continue
		}
		points = append(points, path)
		mounts = append(mounts, object{
			"destination": path, "type": "bind", "source": path, "options": []string{"rbind", "ro", "nosuid", "nodev"},
		})
	}
	for _, point := range points {
		if err := os.MkdirAll(filepath.Join(root, point), 0o755); err != nil {
			return "", err
		}
	}
	var namespaces []object
	for _, kind := range []string{"user", "mount", "pid", "network", "ipc", "uts", "cgroup"} {
		namespaces = append(namespaces, object{"type": kind})
	}
	const firstID, ids = 1_879_048_192 - 65_536, 65_536 // below those of boxes
	mapping := []object{{"containerID": 0, "hostID": firstID, "size": ids}}
	limits := executor.DefaultLimits()
	text, err := json.Marshal(object{
		"ociVersion": "1.0.2", "root": object{"path": root, "readonly": true}, "hostname": "peer", "mounts": mounts,
		"process": object{
			"args": []string{"/bin/true"}, "env": []string{}, "cwd": "/", "user": object{"uid": 0, "gid": 0}, "noNewPrivileges": true,
		},
		"linux": object{
			"namespaces": namespaces, "uidMappings": mapping, "gidMappings": mapping,
			"resources": object{
				"devices": []object{{"allow": false, "access": "rwm"}},
				"memory":  object{"limit": limits.Memory, "swap": limits.Memory},
				"pids":    object{"limit": limits.Processes},
				"cpu":     object{"quota": int64(limits.CPUs * 100_000), "period": 100_000},
			},
		},
	})
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644)
}
