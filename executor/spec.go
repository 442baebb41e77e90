// SPDX-License-Identifier: Apache-2.0

package executor

import "io"

// Spec describes one run. It is plain data apart from its streams. The zero value of every field is the strict one;
// the zero Spec itself is invalid.
type Spec struct {
	// Args is executed as it stands, without a shell. A bare Args[0] is looked up in the run's PATH, in the run's own
	// view of the files; one with a slash is relative to the working directory.
	Args []string

	// Workspace is a directory of the host, required. The run gets a private copy of it as its working directory;
	// the original never changes. Links are copied as links and special files are refused.
	Workspace string

	// Dir is the working directory below Workspace, slash-separated. It must exist and be visible inside.
	Dir string

	// Env is added to the fixed synthetic base (see [BaseEnv]) and may replace its values. Nothing is inherited.
	Env map[string]string

	// Stdin is the payload's input; nil is an empty input. Run does not wait for it once the payload has ended.
	Stdin io.Reader

	// Stdout and Stderr, if not nil, get a live copy, bounded like the captured output. A writer that fails or does not
	// keep up is cut off and reported in [Output.LiveErr]; the run goes on. It is never called after Run has returned,
	// unless the call was already under way.
	Stdout, Stderr io.Writer

	// Mounts are further files and directories of the host that the run may see.
	Mounts []Mount

	// Overlay, if not empty, is an absolute directory of the host. Its regular files stand in the private copy instead
	// of what the workspace has under their paths, or beside it, as if the workspace had held them all along: ReadOnly,
	// Hidden and the limits apply to them. So what judges a variant, its tests and build files, is the caller's copy,
	// whatever the variant did to its tree. A link, a file or a special file of the workspace that is in the way of a
	// directory of Overlay is replaced and never followed, and so is anything in the way of one of its files;
	// directories that both have are joined and keep the workspace's mode. Anything in Overlay but directories and
	// regular files is an error, and nothing starts. Overlay must not overlap Workspace or ArtifactDir: what a variant
	// can write to is no trusted copy.
	Overlay string

	// ReadOnly lists workspace paths, slash-separated, that the run cannot change, replace or remove. They need not
	// exist. A non-empty list requires [ProtectedReadOnly].
	ReadOnly []string

	// Hidden lists workspace paths that the run cannot see. They need not exist. DefaultHidden is always added.
	Hidden []string

	// Artifacts are doublestar patterns over workspace paths. Regular files that match are copied to ArtifactDir after
	// the process tree is dead; ArtifactDir is created if necessary and must not overlap Workspace.
	Artifacts   []string
	ArtifactDir string

	// Limits bound the run. Zero fields take the values of [DefaultLimits].
	Limits Limits

	// Require names capabilities without which the run must not start.
	Require Capability

	// Label marks the run in leases, logs and resource names; at most 128 printable bytes.
	Label string
}

// Mount makes a file or directory of the host visible inside, read-only unless CopyOnWrite is set.
type Mount struct {
	Source string // absolute host path; it must exist when the run starts
	Target string // absolute path inside; empty means the same as Source
	// CopyOnWrite lets the run change what it sees without changing the source.
	CopyOnWrite bool
}

// DefaultHidden lists the base names that no run sees at any depth of its workspace: version control internals (hooks,
// filters and history live there) and files that hold secrets by convention.
func DefaultHidden() []string {
	return []string{".git", ".env"}
}

// Required returns the capabilities without which the specification cannot be honoured: Require, and ProtectedReadOnly
// if ReadOnly names anything.
func (s Spec) Required() Capability {
	if len(s.ReadOnly) > 0 {
		return s.Require | ProtectedReadOnly
	}
	return s.Require
}
