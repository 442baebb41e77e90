// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"log/slog"
	"time"
)

// Config says how an [Executor] works. The zero value is the strictest: a daemon that runs already, runc at or above the
// floor, a root file system that holds nothing of the host, one fresh box for every run.
type Config struct {
	// Address is the daemon's socket, an absolute path. Whoever can use it is root on the daemon's host. Default:
	// [DefaultAddress].
	Address string

	// Managed starts a private daemon (see [StartDaemon]) if Address is empty and no daemon answers at the default. It ends
	// with the executor.
	Managed bool

	// Namespace is the containerd namespace of everything that we make. Images are looked up in it. Default:
	// [DefaultNamespace].
	Namespace string

	// Runtime makes the boxes. Default: runc.
	Runtime Runtime

	// DangerAllowOldRuntime accepts a runc with known breakouts, and one whose version is not known. It is written into
	// every Result.
	DangerAllowOldRuntime bool

	// Root is what a box sees as its file system. Default: a skeleton that holds nothing but what runs declare.
	Root Root

	// IDs are the user and group ids that boxes are mapped to, on the daemon's host.
	IDs IDRange

	// Supervisor is the program that is process 1 of every box, built from cmd/containment-init without cgo. Default: the
	// host program's own executable, which works, but puts all of it into the box (no payload can read it there).
	Supervisor string

	// RuntimeDir holds what the daemon must find under the same path: streams, the supervisor, root directories. If the
	// caller is in a container, bind it there at the same path. Default: /run/containment/containerd. Only root can write
	// to it, everybody can search it.
	RuntimeDir string

	// StateDir holds leases and the locks of ids. All executors that share a daemon should share it, so that each removes
	// what a killed one left. Default: the directory "state" in RuntimeDir.
	StateDir string

	// DaemonPath says under which path the daemon sees one of the caller's: the longest matching From counts, and From and To
	// may be equal. It is only needed where the daemon is not in the caller's mount namespace, as when the caller is in a
	// container: there nothing outside RuntimeDir can be shown to a run for which the caller does not vouch here.
	DaemonPath []PathMap

	// Warm keeps boxes ready. The zero value keeps none.
	Warm Warm

	// WorkspaceBytes and WorkspaceFiles bound what is copied for one run; more is a set-up error. Defaults: 2 GiB and
	// 500,000.
	WorkspaceBytes, WorkspaceFiles int64

	// SweepEvery is the time between two looks for what killed host programs left. Default: 10 minutes. The first is in New.
	SweepEvery time.Duration

	// Logger gets what happens outside of runs: leftovers swept, boxes that could not be kept warm. Nil discards.
	Logger *slog.Logger
}

// Runtime names an OCI runtime as the daemon knows it.
type Runtime struct {
	// Name is the shim's name on the daemon's PATH, or its absolute path. Default: [Runc].
	Name string
	// Binary is the runtime program that the shim starts, an absolute path for the daemon. Default: what the shim finds. For
	// runc and compatible ones.
	Binary string
	// ConfigPath is the configuration file of a gVisor shim. For gVisor only.
	ConfigPath string
}

// The runtimes that are known by name.
const (
	Runc  = "io.containerd.runc.v2"
	Runsc = "io.containerd.runsc.v1" // gVisor
)

// Root says what the root file system of a box is. At most one of Image, Archive and Directory may be set; if none is, it
// is a skeleton. It is read-only for the box in every case. Nothing is ever pulled.
type Root struct {
	// Image is a reference that the daemon has in our namespace already. A tag is resolved once, in New; what it names then
	// is used as long as the executor lives. Environment, entry point, user, volumes of the image are ignored.
	Image string
	// Archive is an OCI or Docker archive, which is imported once for its content.
	Archive string
	// Directory is used as it is. It must have the mount points of a box and be readable by everybody.
	Directory string
	// Reads are files and directories of the host that every run sees at their own paths, read-only, beside what its
	// Mounts declare. Those that are symbolic links are links inside too. MinimalRoot is not promised with any.
	Reads []string
}

// IDRange is a range of user and group ids, the same for both, that nothing else on the host uses. Each box gets
// [IDsPerBox] of them for itself, since the kernel counts processes, keys and message queues by id.
type IDRange struct {
	First uint32 // a multiple of IDsPerBox; default 1,879,048,192
	Boxes int    // boxes at the same time; default 256
}

// PathMap says that what the caller sees at From the daemon sees at To.
type PathMap struct{ From, To string }

// Warm says how many boxes wait for a job. Each is used once, and only for a run that would have got exactly such a box.
// One that is dead when its job comes is replaced, unless the run has a Stdin: what was read of that is gone.
type Warm struct {
	// Size is the number of boxes that wait, for the kind of run seen last. 0: none.
	Size int
	// MaxIdle is how long a box may wait; then it ends by itself and is replaced. Default: 1 minute.
	MaxIdle time.Duration
	// Fillers is the number of boxes that are made at the same time. Default: 1.
	Fillers int
}

// Defaults of Config.
const (
	DefaultAddress   = "/run/containerd/containerd.sock"
	DefaultNamespace = "evoseal"

	defaultRuntimeDir     = "/run/containment/containerd"
	defaultWorkspaceBytes = 2 << 30
	defaultWorkspaceFiles = 500_000
	defaultSweepEvery     = 10 * time.Minute
	defaultMaxIdle        = time.Minute
	defaultBoxes          = 256
	// 0x70000000: above what shadow-utils (from 100,000 on, at most 600,100,000), systemd-nspawn (0x00080000–0x6fff0000)
	// and systemd's foreign ids (0x7ffe0000–0x7ffeffff) take, below 2^31, where some programs stop.
	defaultFirstID = 0x70000000
)

// IDsPerBox is the number of ids in one box: as many as programs expect at least.
const IDsPerBox = 1 << 16

// Hostname is the name of the machine inside.
const Hostname = "containment"

func (c Config) withDefaults() Config {
	setDefault(&c.Namespace, DefaultNamespace)
	setDefault(&c.Runtime.Name, Runc)
	setDefault(&c.IDs.First, defaultFirstID)
	setDefault(&c.IDs.Boxes, defaultBoxes)
	setDefault(&c.RuntimeDir, defaultRuntimeDir)
	setDefault(&c.StateDir, c.RuntimeDir+"/state")
	setDefault(&c.WorkspaceBytes, defaultWorkspaceBytes)
	setDefault(&c.WorkspaceFiles, defaultWorkspaceFiles)
	setDefault(&c.SweepEvery, defaultSweepEvery)
	setDefault(&c.Warm.MaxIdle, defaultMaxIdle)
	setDefault(&c.Warm.Fillers, 1)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
