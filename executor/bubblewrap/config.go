// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import "log/slog"

// Config says how an [Executor] works. The zero value is the strictest.
type Config struct {
	// Path is the bubblewrap program. Default: bwrap in the directories of [executor.DefaultPath]; the caller's own PATH is
	// not asked.
	Path string

	// StateDir holds the leases of running and crashed runs and the files that stand in for the host's in every run. All
	// executors of one user should share it, so that each removes what a killed one left. Default: /run/containment for
	// root if /run is in memory, else containment-UID in /dev/shm or, if that is not in memory either, in the temporary
	// directory. It must belong to the caller and be writable by nobody else; it is created if necessary.
	StateDir string

	// ScratchDir is where private copies live. Default: the directory "scratch" in StateDir if that is set or if every run
	// mounts a file system of its own, held in memory and sized by Limits.Disk; else containment-UID/scratch in the
	// temporary directory.
	ScratchDir string

	// DiskScratch puts the copies on the file system of ScratchDir itself: for workspaces that are large beside the
	// memory, or where reflinks make copies free. DiskBounded is then not promised.
	DiskScratch bool

	// WorkspaceBytes and WorkspaceFiles bound what is copied for one run, and for each of its mounts that is copied; more is
	// a set-up error. Defaults: 2 GiB and 500,000.
	WorkspaceBytes, WorkspaceFiles int64

	// FirstUID and UIDs are the range of uids (and equal gids) reserved for runs of a root caller, one for each concurrent
	// run. Nothing else on the host may use them, or a run could be killed for one of ours, or the other way round.
	// Executors may share them, whatever their StateDir: the locks are in the directory "uids" of root's default StateDir,
	// or of this StateDir where /run is not the caller's, as in a user namespace. Containers that have uids in common but
	// not that directory need ranges of their own. Defaults: 65200 and 256.
	FirstUID, UIDs int

	// Reads are files and directories of the host that every run sees at their own paths, read-only, instead of
	// [DefaultReads]. Those that are symbolic links are links inside too. All must exist.
	Reads []string

	// Logger gets what happens outside of runs: leftovers swept. Nil discards.
	Logger *slog.Logger
}

// DefaultReads are the files and directories of the host that a run sees, as far as they exist: programs, libraries, and
// what the loader and TLS need. What else is in /etc is written by us and tells nothing of the host; /run, /var, /home and
// /sys are not there.
func DefaultReads() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/certs",
	}
}

// What a run sees of itself. It is the same in every run.
const (
	// Hostname is the name of the machine.
	Hostname = "containment"
	// Workspace is the directory that holds the copy of Spec.Workspace.
	Workspace = "/workspace"
	// Home and TempDir are HOME and TMPDIR.
	Home, TempDir = "/home/containment", "/tmp"
	// UID and GID are the run's ids in its own user namespace. For the host they are the reserved ones of a root caller's
	// run, or the caller's own.
	UID, GID = 1000, 1000

	sharedMemory = "/dev/shm"
)
