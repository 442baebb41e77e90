// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/evoseal/containment/executor"
)

// overlayCases hold for every executor: a variant that keeps its own judge away from the run, or swaps it, is judged by
// nobody.
func overlayCases() []Case {
	return []Case{
		check("overlay-file", "a variant that rewrote its tests must meet the trusted ones", 0, overlayOver(inWayFile)),
		check("overlay-link", "a link in the way leads the trusted files past the run, or over files of the host",
			0, overlayOver(inWayLink)),
		check("overlay-directory", "a directory under the name of a test file, or the other way round, must not keep it out",
			0, overlayOver(inWayKind)),
		check("overlay-hidden", "a file that nobody may see stays hidden, whoever supplies it", 0, overlayHidden),
		attack("overlay-protected", "a trusted test that the run can replace judges nothing",
			executor.ProtectedReadOnly, overlayProtected),
		attackUnder("overlay-private", "what a run does to its copy of a trusted file must not reach the next one's",
			0, control{inPlace: true}, overlayPrivate),
		check("overlay-refuses", "a link or a device among trusted files trusts whatever it leads to", 0, overlayRefuses),
	}
}

// overlayFiles is what the overlay of these cases holds, at the top, below it and further down.
var overlayFiles = []string{"build", "tests/a_test", "tests/sub/b_test", "new/deep/c_test"}

// overlay makes one with fresh texts, which it returns in the order of overlayFiles.
func (s *scene) overlay() (dir string, texts []string, err error) {
	for _, rel := range overlayFiles {
		text := randomHex(16)
		if _, err := s.plant("overlay/"+rel, text, 0o644); err != nil {
			return "", nil, s.fault(err)
		}
		texts = append(texts, text)
	}
	return filepath.Join(s.dir, "overlay"), texts, nil
}

// overlayOver lets a workspace stand in the overlay's way. The run reads what there is; the originals are compared.
func overlayOver(inWay func(s *scene) error) probe {
	return func(s *scene) error {
		dir, texts, err := s.overlay()
		if err != nil {
			return err
		}
		own, err := s.plant("ws/kept/own", randomHex(16), 0o644)
		if err == nil {
			err = inWay(s)
		}
		if err != nil {
			return s.fault(err)
		}
		text, err := os.ReadFile(own)
		if err != nil {
			return s.fault(err)
		}
		same, err := s.unchanged(s.dir) // the workspace, the overlay, and what links lead to
		if err != nil {
			return err
		}
		spec := s.spec("read", job{Paths: append(slices.Clone(overlayFiles), "kept/own")})
		spec.Overlay = dir
		res, err := s.reach(spec)
		if err != nil {
			return err
		}
		if err := s.mustSay(res, "read", append(texts, string(text))...); err != nil {
			return err
		}
		return same()
	}
}

// inWayFile has the same names with other contents.
func inWayFile(s *scene) error {
	for _, rel := range overlayFiles[:3] {
		if _, err := s.plant("ws/"+rel, "forged", 0o755); err != nil {
			return err
		}
	}
	_, err := s.plant("ws/tests/other", "forged", 0o644)
	return err
}

// inWayLink leads every name of the overlay to the host: directories, files, one that is there and one that is not.
func inWayLink(s *scene) error {
	for _, rel := range []string{"a_test", "sub/b_test", "build"} {
		if _, err := s.plant("outside/"+rel, "outside", 0o666); err != nil {
			return err
		}
	}
	outside := filepath.Join(s.dir, "outside")
	return errors.Join(os.Symlink(outside, filepath.Join(s.ws, "tests")), os.Symlink(outside, filepath.Join(s.ws, "new")),
		os.Symlink(filepath.Join(outside, "not-there"), filepath.Join(s.ws, "build")))
}

// inWayKind has directories for files and files for directories, and a link deeper down.
func inWayKind(s *scene) error {
	_, err := s.plant("ws/build/x/y", "forged", 0o644)
	if err == nil {
		_, err = s.plant("ws/tests/a_test/z", "forged", 0o644)
	}
	if err == nil {
		_, err = s.plant("ws/new", "forged", 0o644)
	}
	return errors.Join(err, os.Symlink("/", filepath.Join(s.ws, "tests", "sub")))
}

// overlayHidden hides by default, by path, and a whole directory.
func overlayHidden(s *scene) error {
	dir, texts, err := s.overlay()
	if err != nil {
		return err
	}
	secret := randomHex(16)
	for _, rel := range []string{"mine.txt", "dir/secret", ".env", "sub/.git/config"} {
		if _, err := s.plant("overlay/"+rel, secret, 0o644); err != nil {
			return s.fault(err)
		}
	}
	spec := s.spec("tree", job{})
	spec.Overlay, spec.Hidden = dir, []string{"mine.txt", "dir", "not/there"}
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if strings.Contains(res.Stdout.String(), secret) {
		return s.breach("hidden files of the overlay can be read: %q", answers(res.Stdout.Bytes(), "file"))
	}
	if !slices.Contains(answers(res.Stdout.Bytes(), "holds"), texts[0]) {
		return s.breach("the overlay is not there: %q", answers(res.Stdout.Bytes(), "file"))
	}
	return nil
}

// overlayProtected attacks a file that the workspace itself leads elsewhere, in the ways that replace what is seen there.
func overlayProtected(s *scene) error {
	dir, texts, err := s.overlay()
	if err != nil {
		return err
	}
	if err := os.Symlink(s.dir, filepath.Join(s.ws, "tests")); err != nil {
		return s.fault(err)
	}
	for _, how := range []string{"write", "chmod", "rename", "unlink", "parent"} {
		spec := s.spec("protected", job{Name: how, Paths: overlayFiles[1:2], Text: "forged"})
		spec.Overlay, spec.ReadOnly = dir, overlayFiles[1:2]
		res, err := s.reach(spec)
		if err != nil {
			return err
		}
		if seen := answers(res.Stdout.Bytes(), "sees"); !slices.Equal(seen, texts[1:2]) {
			return s.breach("after %s the run sees %.100q instead of the overlay's text", how, seen)
		}
	}
	return nil
}

// overlayPrivate lets a run destroy everything, and a second one look.
func overlayPrivate(s *scene) error {
	dir, texts, err := s.overlay()
	if err != nil {
		return err
	}
	if err := s.fillWorkspace(); err != nil {
		return err
	}
	same, err := s.unchanged(s.ws)
	if err != nil {
		return err
	}
	sameOverlay, err := s.unchanged(dir)
	if err != nil {
		return err
	}
	first, second := s.plainSpec("rewrite"), s.spec("read", job{Paths: overlayFiles})
	first.Overlay, second.Overlay = dir, dir
	if _, err := s.reach(first); err != nil {
		return err
	}
	if err := same(); err != nil {
		return err
	}
	if err := sameOverlay(); err != nil {
		return err
	}
	res, err := s.reach(second)
	if err != nil {
		return err
	}
	return s.mustSay(res, "read", texts...)
}

// overlayRefuses puts one thing into an overlay that does not belong there. Nothing starts, and the error names it.
func overlayRefuses(s *scene) error {
	dir, _, err := s.overlay()
	if err != nil {
		return err
	}
	odd := filepath.Join(dir, "tests", "odd")
	for what, put := range map[string]func() error{
		"link to a file":            func() error { return os.Symlink("a_test", odd) },
		"link to a directory":       func() error { return os.Symlink("sub", odd) },
		"link out of the overlay":   func() error { return os.Symlink("/etc/passwd", odd) },
		"link that leads to none":   func() error { return os.Symlink("none", odd) },
		"FIFO":                      func() error { return syscall.Mkfifo(odd, 0o644) },
		"socket in the file system": func() error { return syscall.Mknod(odd, syscall.S_IFSOCK|0o644, 0) },
	} {
		if err := put(); err != nil {
			return s.fault(err)
		}
		spec := s.spec("witness", job{})
		spec.Overlay = dir
		err, verdict := s.mustNotStart(spec)
		if verdict != nil {
			return verdict
		}
		var setup *executor.SetupError
		if !errors.As(err, &setup) || !strings.Contains(err.Error(), "odd") {
			return s.breach("a %s in the overlay gives no SetupError that names it: %v", what, err)
		}
		if err := os.Remove(odd); err != nil {
			return s.fault(err)
		}
	}
	link := filepath.Join(s.dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		return s.fault(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, path := range []string{link, link + "/", s.ws, s.dir, at("build"), at("none"), "overlay"} {
		spec := s.spec("witness", job{})
		spec.Overlay = path
		err, verdict := s.mustNotStart(spec)
		if verdict != nil {
			return verdict
		}
		if !errors.Is(err, executor.ErrInvalidSpec) {
			return s.breach("the overlay %q gives no ErrInvalidSpec: %v", path, err)
		}
	}
	return nil
}
