// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/evoseal/containment/executor"
)

// Extract copies what the request selects. The process tree that wrote the workspace must be dead; if it is not, what comes
// back is still a regular file of the workspace, but at an unknown moment of its life.
func Extract(ctx context.Context, r Request) ([]executor.Artifact, []executor.Refusal, error) {
	if err := r.check(true, true); err != nil {
		return nil, nil, err
	}
	x := newExtraction(&r)
	root, err := x.openRoot()
	if err != nil {
		return nil, nil, err
	}
	defer unix.Close(root)
	d, err := openDest(r.Dest, r.ID)
	if err != nil {
		return nil, nil, err
	}
	defer d.close()
	x.dest = d
	err = x.inTime(ctx, root)
	artifacts, refusals := x.all()
	return artifacts, refusals, err
}

func newExtraction(r *Request) *extraction {
	return &extraction{
		req: r, sel: r.selector(), left: maxEntries, taken: map[string]bool{}, bytes: r.MaxBytes,
		// Files that are refused in the middle cost time as well; a payload must not make us read without end.
		work: 2 * min(r.MaxBytes, math.MaxInt64/2),
	}
}

// inTime is run; that the time ran out is a refusal of the rest.
func (x *extraction) inTime(ctx context.Context, root int) error {
	err := x.run(ctx, root)
	if errors.Is(err, errNoTime) {
		x.refuse("", "the time for artifacts was used up; what is not listed was not looked at")
		err = nil
	}
	return err
}

// extraction is one call of Extract.
type extraction struct {
	results
	req   *Request
	sel   *selector
	dest  target
	left  int   // entries that may still be looked at
	bytes int64 // bytes that may still be taken
	work  int64 // bytes that may still be looked at
	taken map[string]bool
	full  bool // MaxFiles was reached, which is said once
	cut   bool // maxEntries was reached, which is said once
	buf   []byte
}

// openRoot gets a descriptor of our own: its offset is nobody else's.
func (x *extraction) openRoot() (fd int, err error) {
	conn, err := x.req.Root.SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("%w: Root: %w", ErrRequest, err)
	}
	ctl := conn.Control(func(root uintptr) { fd, err = x.open(int(root), ".", openDir) })
	if err = errors.Join(ctl, err); err != nil {
		return -1, fmt.Errorf("artifact: open the workspace: %w", err)
	}
	return fd, nil
}

// run looks literal paths up first: they cost little and cannot be pushed out of reach by a flood of other files.
func (x *extraction) run(ctx context.Context, root int) error {
	for _, p := range x.sel.literals {
		if err := x.literal(ctx, root, p); err != nil {
			return err
		}
	}
	for _, dir := range x.sel.bases() {
		if err := x.search(ctx, root, dir); err != nil {
			return err
		}
	}
	for _, g := range x.sel.globs {
		if !g.matched {
			x.refuse(g.pattern, "no file matches")
		}
	}
	return nil
}

func (x *extraction) literal(ctx context.Context, root int, p string) error {
	if reason := x.sel.barred(p); reason != "" {
		x.refuse(p, "%s", reason)
		return nil
	}
	if components(p) > executor.ArtifactDepth {
		x.refuse(p, "deeper than %d components", executor.ArtifactDepth)
		return nil
	}
	return x.take(ctx, root, p, p)
}

// search begins a walk at the directory in which a pattern can match at all.
func (x *extraction) search(ctx context.Context, root int, dir string) error {
	depth := components(dir)
	if dir == "." {
		depth = 0
	}
	if reason := x.sel.barred(dir); reason != "" {
		x.refuse(dir, "%s", reason)
		return nil
	}
	fd, err := x.open(root, dir, openDir)
	if err == unix.ENOTDIR { // a link that is not followed gives the same answer as a file
		err = x.whyNot(root, dir)
	}
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR:
		return nil // "no file matches" is said once, of the pattern
	default:
		x.refuse(dir, "%s", explain(err))
		return nil
	}
	defer unix.Close(fd)
	return x.enter(ctx, fd, dir, depth)
}

// whyNot tells a link from another thing that is no directory.
func (x *extraction) whyNot(root int, p string) error {
	fd, err := x.open(root, p, openFile)
	if err != nil {
		return err
	}
	unix.Close(fd)
	return unix.ENOTDIR
}

// enter walks a directory unless it is too deep.
func (x *extraction) enter(ctx context.Context, fd int, dir string, depth int) error {
	if depth >= executor.ArtifactDepth {
		x.refuse(dir, "deeper than %d components; what is below was not looked at", executor.ArtifactDepth)
		return nil
	}
	return x.walk(ctx, fd, dir, depth)
}

// walk goes through a directory in the order of names, so that the same tree gives the same artifacts.
func (x *extraction) walk(ctx context.Context, fd int, dir string, depth int) error {
	for _, name := range x.list(ctx, fd, dir) {
		if ctx.Err() != nil {
			break
		}
		if err := x.visit(ctx, fd, name, path.Join(dir, name), depth+1); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: stopped at %q: %w", errNoTime, dir, context.Cause(ctx))
	}
	return nil
}

// errNoTime: ctx ended. What was taken until then stands.
var errNoTime = errors.New("artifact: out of time")

// list reads at most as many names as may still be looked at.
func (x *extraction) list(ctx context.Context, fd int, dir string) []string {
	var names []string
	for name, err := range entries(fd) {
		switch {
		case err != nil:
			x.refuse(dir, "cannot be listed: %v", err)
			return nil
		case ctx.Err() != nil:
			return nil
		case x.left == 0:
			if !x.cut {
				x.refuse(dir, "more than %d entries to look at; the rest, here and elsewhere, was not looked at", maxEntries)
			}
			x.cut = true
			slices.Sort(names)
			return names
		}
		x.left--
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// visit descends into directories that may hold a match and takes what matches.
func (x *extraction) visit(ctx context.Context, fd int, name, p string, depth int) error {
	matches := x.sel.match(p)
	if !matches && !x.sel.enter(p) {
		return nil
	}
	reason := x.sel.barred(p)
	sub, err := x.open(fd, name, openDir)
	if err == nil {
		defer unix.Close(sub)
	}
	switch {
	case reason != "" && (matches || err == nil):
		x.refuse(p, "%s", reason)
	case reason != "":
	case err == nil && x.sel.enter(p):
		return x.enter(ctx, sub, p, depth)
	case err == nil: // a directory that matches is no file, and is not reported as one
	case matches:
		return x.take(ctx, fd, name, p)
	case err != unix.ENOTDIR && err != unix.ENOENT && err != unix.ELOOP:
		x.refuse(p, "%s", explain(err)) // something may lie below that a pattern selects
	}
	return nil
}

// take opens a path below fd and copies it, or says why not.
func (x *extraction) take(ctx context.Context, fd int, name, p string) error {
	if x.taken[p] {
		return nil
	}
	x.taken[p] = true
	in, err := x.open(fd, name, openFile)
	if err != nil {
		x.refuse(p, "%s", explain(err))
		return nil
	}
	defer unix.Close(in)
	var st unix.Stat_t
	if err := unix.Fstat(in, &st); err != nil {
		x.refuse(p, "%s", explain(err))
		return nil
	}
	if reason := unfit(&st); reason != "" {
		x.refuse(p, "%s", reason)
		return nil
	}
	if len(x.artifacts) >= x.req.MaxFiles {
		if !x.full {
			x.refuse(p, "more than %d files; this one and those after it were not taken", x.req.MaxFiles)
		}
		x.full = true
		return nil
	}
	return x.keep(ctx, in, p, &st)
}

// unfit returns why what was opened is not an artifact, or "".
func unfit(st *unix.Stat_t) string {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return "a directory; declare what is in it, such as with /**"
	case unix.S_IFIFO:
		return "a FIFO; only regular files come back"
	case unix.S_IFSOCK:
		return "a socket; only regular files come back"
	default:
		return "a device; only regular files come back"
	}
	if st.Nlink != 1 {
		return fmt.Sprintf("it has %d names (hard links); only files with one name come back", st.Nlink)
	}
	return ""
}

// explain words an error of open: most of them say what the payload put there.
func explain(err error) string {
	switch err {
	case unix.ENOENT, unix.ENOTDIR:
		return "no file matches"
	case unix.ELOOP:
		return "a symbolic link, or below one; links are never followed"
	case unix.EXDEV:
		return "a mount point, or below one; mounts are not crossed"
	case unix.ENXIO, unix.ENODEV:
		return "a socket or device; only regular files come back"
	case unix.EACCES:
		return "permission denied; the caller cannot read it"
	}
	return "cannot be opened: " + err.Error()
}
