// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/containerd/internal/box"
)

// wanted is what a run sees of the host beside its workspace.
type wanted struct {
	binds  []bind       // sources as the caller names them
	points []mountPoint // what the root must have for them
}

// reserved are the places of a box that no mount may cover.
var reserved = []string{"/proc", "/dev", "/sys", "/run", box.SupervisorDir, box.Mount}

// look examines what a run declares. The files are looked at as they are now; the runtime binds what is there then.
func (e *Executor) look(spec executor.Spec) (wanted, error) {
	w := wanted{binds: slices.Clone(e.reads.binds), points: slices.Clone(e.reads.points)}
	for i, m := range spec.Mounts {
		target := path.Clean(cmp.Or(m.Target, m.Source))
		switch {
		case below(target, reserved...), below("/dev", target), below(box.SupervisorDir, target), target == "/tmp":
			return w, e.unsupported(fmt.Sprintf("Mounts[%d]: %s is a place of the box itself", i, target), "choose another target")
		case m.CopyOnWrite:
			return w, e.unsupported(fmt.Sprintf("Mounts[%d]: copies of mounts are not made", i), "put the files into the workspace")
		}
		dir, err := inspect(m.Source)
		if err == nil {
			err = socketsOf(m.Source, e.conn.address)
		}
		if err != nil {
			return w, &executor.SetupError{Step: "mount", Err: err}
		}
		source, err := e.sourceOf(fmt.Sprintf("Mounts[%d]", i), m.Source)
		if err != nil {
			return w, err
		}
		w.add(bind{source, target}, dir)
	}
	return w, nil
}

// sourceOf says where the daemon sees a file. Links are resolved here: they lead somewhere else among the daemon's files, to
// which nothing that was vouched for or examined applies.
func (e *Executor) sourceOf(field, path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", &executor.SetupError{Step: "mount", Err: err}
	}
	source, known := e.daemonPath(real)
	if !known {
		return "", e.unknownPath(field, path)
	}
	return source, nil
}

// unknownPath refuses what might be another file for the daemon.
func (e *Executor) unknownPath(field, path string) error {
	return e.unsupported(fmt.Sprintf("%s: the daemon runs with other files than the caller, and what it sees at %s is not known", field, path),
		"say in Config.DaemonPath where it sees that directory, or use an image")
}

// add leaves out what is there already.
func (w *wanted) add(b bind, dir bool) {
	if slices.Contains(w.binds, b) {
		return
	}
	w.binds = append(w.binds, b)
	if !below(b.Target, "/tmp") { // the runtime makes those
		w.points = append(w.points, mountPoint{Path: b.Target, Dir: dir})
	}
}

// inspect demands a directory or regular file, or a device that every box has, and no socket: whoever can reach the daemon
// through one is root on the host.
func inspect(source string) (dir bool, err error) {
	fi, err := os.Stat(source)
	if err != nil {
		return false, err
	}
	switch {
	case fi.IsDir():
		return true, nil
	case fi.Mode().IsRegular():
		return false, nil
	}
	return false, fmt.Errorf("%s is neither a directory nor a regular file", source)
}

// socketsOf names a socket of the daemon below a directory that is to be shown.
func socketsOf(source, address string) error {
	real, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	for _, socket := range []string{address, DefaultAddress, "/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock",
		"/run/crio/crio.sock", "/run/buildkit/buildkitd.sock"} {
		if at, err := filepath.EvalSymlinks(socket); err == nil && below(at, real) {
			return fmt.Errorf("%s holds %s, and whoever can use that is root on the host", source, socket)
		}
	}
	return nil
}

// lookAtReads examines Config.Root.Reads once.
func (e *Executor) lookAtReads(reads []string) (w wanted, err error) {
	for _, r := range reads {
		clean := filepath.Clean(r)
		if !filepath.IsAbs(r) || clean == "/" || below(clean, "/tmp") || below(clean, reserved...) {
			return w, fmt.Errorf("%s cannot be shown at its own path", r)
		}
		fi, err := os.Lstat(clean)
		if err != nil {
			return w, err
		}
		if fi.Mode()&os.ModeSymlink != 0 {
			to, err := os.Readlink(clean)
			if err != nil {
				return w, err
			}
			w.points = append(w.points, mountPoint{Path: clean, Link: to})
			continue
		}
		dir, err := inspect(clean)
		if err != nil {
			return w, err
		}
		source, err := e.sourceOf("Root.Reads", clean)
		if err != nil {
			return w, err
		}
		w.add(bind{source, clean}, dir)
	}
	return w, nil
}

// key names a set of mount points.
func key(points []mountPoint) string {
	var b strings.Builder
	for _, p := range points {
		fmt.Fprintf(&b, "%q %t %q\n", p.Path, p.Dir, p.Link)
	}
	return b.String()
}
