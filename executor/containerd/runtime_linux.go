// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/api/types/runc/options"
	runtimeoptions "github.com/containerd/containerd/api/types/runtimeoptions/v1"
	"github.com/containerd/typeurl/v2"
	"github.com/opencontainers/runtime-spec/specs-go/features"
)

// runtimeFacts are what is known of the runtime before the first box.
type runtimeFacts struct {
	name    string
	version string // empty: not known
	gvisor  bool
	old     bool // below the floor, or not known
}

// runtimeOptions are handed to the shim as they are.
func runtimeOptions(r Runtime) (typeurl.Any, error) {
	switch {
	case r.ConfigPath != "":
		return typeurl.MarshalAny(&runtimeoptions.Options{TypeUrl: "io.containerd.runsc.v1.options", ConfigPath: r.ConfigPath})
	case r.Binary != "":
		return typeurl.MarshalAny(&options.Options{BinaryName: r.Binary})
	}
	return nil, nil
}

// runtimeFacts asks for the version: a newer daemon over the socket, an older one through the program, as far as that is on
// our own file system.
func (c *conn) runtimeFacts(ctx context.Context, r Runtime, path string) (runtimeFacts, error) {
	f := runtimeFacts{name: r.Name, gvisor: strings.Contains(filepath.Base(r.Name), "runsc"), old: true}
	if base := filepath.Base(r.Binary); base == "crun" || strings.Contains(r.Name, "crun") {
		return f, &DaemonError{
			Op: "runtime", Reason: "crun is not supported: it refuses the OCI version and hybrid cgroups", Fix: "use runc",
		}
	}
	if f.gvisor {
		f.old = false // its kernel is its own; what it is worth, the proof box shows
	}
	if c.version.major >= 2 {
		ctx, cancel := c.within(ctx, askTime)
		defer cancel()
		var opts any
		if r.Binary != "" {
			opts = &options.Options{BinaryName: r.Binary}
		}
		if info, err := c.client.RuntimeInfo(ctx, r.Name, opts); err == nil {
			f.version = runcVersion(info.Features) // info.Version is the shim's
		}
	}
	if f.version == "" && r.Name == Runc {
		if binary, err := findIn(path, cmp.Or(r.Binary, "runc")); err == nil {
			if v, err := binaryVersion(ctx, binary); err == nil {
				f.version = v.String()
			}
		}
	}
	if v, ok := parseVersion(f.version); ok && r.Name == Runc {
		f.old = belowFloor(v)
	}
	return f, nil
}

// runcVersion reads what "runc features" says of runc itself.
func runcVersion(data any) string {
	f, ok := data.(*features.Features)
	if !ok {
		return ""
	}
	return f.Annotations["org.opencontainers.runc.version"]
}

// accept refuses a runtime with known breakouts.
func (f runtimeFacts) accept(danger bool) error {
	if !f.old || danger {
		return nil
	}
	return &DaemonError{
		Op: "runtime", Reason: fmt.Sprintf("%s has version %q, and known breakouts were fixed in 1.2.8, 1.3.3 and 1.4.0", f.name,
			cmp.Or(f.version, "unknown")),
		Fix: "install a newer runc, name one in Config.Runtime.Binary, or accept the danger with Config.DangerAllowOldRuntime",
	}
}

// note is what every Result says about the runtime.
func (f runtimeFacts) note() string {
	text := f.name + " " + cmp.Or(f.version, "of unknown version")
	if f.old {
		text += "; DangerAllowOldRuntime: it has, or may have, known breakouts"
	}
	return text
}
