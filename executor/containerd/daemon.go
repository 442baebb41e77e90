// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"fmt"
	"log/slog"
	"strings"
)

// DaemonConfig says how [StartDaemon] starts a daemon.
type DaemonConfig struct {
	// Dir is a directory of the caller's own for everything that the daemon has. It is made if necessary and removed by
	// Close. The path may have at most 80 bytes, since sockets are below it.
	Dir string
	// Binary is the program. Default: containerd on Path.
	Binary string
	// Path is the daemon's search path for runc and shims. Default: [executor.DefaultPath].
	Path string
	// Logger gets what the daemon printed if it does not start. Nil discards.
	Logger *slog.Logger
}

// maxDaemonDir leaves room for the name of a socket: its path has at most 107 bytes.
const maxDaemonDir = 80

// unusedPlugins would look for file systems that no test host has, listen for Kubernetes, or run other people's plug-ins.
var unusedPlugins = []string{
	"io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.nri.v1.nri",
	"io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
	"io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs",
	"io.containerd.internal.v1.restart", "io.containerd.monitor.container.v1.restart",
	"io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp",
}

// daemonConfig writes the configuration file for a daemon of this version. Version 2 of the format is read by all of them;
// the newest releases want the sockets in tables of plug-ins, and listen on the host's default path if they do not find
// them there.
func daemonConfig(v version, dir string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	grpc, ttrpc := "grpc", "ttrpc"
	switch {
	case v.major < 2:
		line("version = 2")
	case v.less(version{2, 2, 0, ""}):
		line("version = 3")
	default:
		line("version = 4")
		grpc, ttrpc = "plugins.'io.containerd.server.v1.grpc'", "plugins.'io.containerd.server.v1.ttrpc'"
	}
	line("root = %q\nstate = %q", dir+"/root", dir+"/state")
	line("disabled_plugins = [")
	for _, p := range unusedPlugins {
		line("  %q,", p)
	}
	line("]")
	line("[%s]\n  address = %q", grpc, daemonSocket(dir))
	line("[%s]\n  address = %q", ttrpc, daemonSocket(dir)+".ttrpc")
	// Its default is a directory of the host.
	line("[plugins.'io.containerd.internal.v1.opt']\n  path = %q", dir+"/opt")
	return b.String()
}

func daemonSocket(dir string) string { return dir + "/sock" }
