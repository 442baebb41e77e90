// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// workspaceCases hold for every executor: the copy is whole, private and the run's own.
func workspaceCases() []Case {
	inPlace, shared := control{inPlace: true}, control{sharedTmp: true}
	return []Case{
		attackUnder("workspace-private", "a run that edits the original destroys the only good version",
			0, inPlace, wsPrivate),
		attackUnder("workspace-fresh", "what one run leaves must not meet the next", 0, inPlace, wsFresh),
		attackUnder("workspace-parallel", "two runs of one workspace at once must not share it",
			0, inPlace, wsParallel),
		attackUnder("tmpdir-private", "a shared temporary directory joins runs", 0, shared, tmpPrivate),
		check("workspace-hidden", "history, hooks and secrets must not enter the copy", 0, wsHidden),
		check("workspace-links", "a link that is followed copies the host's files into the run", 0, wsLinks),
		check("workspace-special", "a FIFO or socket in a workspace must fail at once, not hang the copy",
			0, wsSpecial),
		check("workspace-deep", "deep trees and odd names are legal", 0, wsDeep),
		check("workspace-modes", "the run owns its copy: execute bits are kept and everything can be changed",
			0, wsModes),
		check("ghost-files", "mount points and dotfiles left behind dirty the original", 0, ghostFiles),
	}
}

// fillWorkspace makes a small project.
func (s *scene) fillWorkspace() error {
	for rel, text := range map[string]string{
		"ws/main.go": "package main\n", "ws/sub/data.txt": "data\n", "ws/sub/deep/x": "x\n", "ws/empty": "",
	} {
		if _, err := s.plant(rel, text, 0o644); err != nil {
			return s.fault(err)
		}
	}
	return nil
}

// wsHidden has rules by default, rules of the caller and rules that name nothing, at several depths.
func wsHidden(s *scene) error {
	secret := randomHex(16)
	for _, rel := range []string{".git/config", ".env", "sub/.env", "sub/.git/hooks/x", "mine.txt", "dir/secret"} {
		if _, err := s.plant("ws/"+rel, secret, 0o644); err != nil {
			return s.fault(err)
		}
	}
	if _, err := s.plant("ws/sub/seen", "x", 0o644); err != nil {
		return s.fault(err)
	}
	same, err := s.unchanged(s.ws)
	if err != nil {
		return err
	}
	spec := s.spec("tree", job{})
	spec.Hidden = []string{"mine.txt", "dir", "not/there"}
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	tree := answers(res.Stdout.Bytes(), "file")
	if !slices.Contains(tree, "sub/seen") {
		return inconclusive(s.name, "the payload did not see its workspace: %q", tree)
	}
	if strings.Contains(res.Stdout.String(), secret) {
		return s.breach("hidden files can be read: %q", tree)
	}
	return same()
}

// wsLinks has links out, to nowhere and to themselves: copying follows none and keeps all.
func wsLinks(s *scene) error {
	secret := randomHex(16)
	outside, err := s.plant("outside/secret", secret, 0o600)
	if err != nil {
		return s.fault(err)
	}
	links := map[string]string{
		"out": outside, "outdir": filepath.Dir(outside), "loop": "loop", "dangling": "no/where", "self": ".",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(s.ws, name)); err != nil {
			return s.fault(err)
		}
	}
	res, err := s.reach(s.spec("links", job{}))
	if err != nil {
		return err
	}
	for name, target := range links {
		if err := s.mustSay(res, "link-"+name, target); err != nil {
			return err
		}
	}
	return nil
}

// wsSpecial: whoever opens these to copy them waits for somebody who never comes.
func wsSpecial(s *scene) error {
	for name, mode := range map[string]uint32{"fifo": syscall.S_IFIFO, "socket": syscall.S_IFSOCK} {
		path := filepath.Join(s.ws, name)
		if err := syscall.Mknod(path, mode|0o644, 0); err != nil {
			return s.fault(err)
		}
		start := time.Now()
		if _, verdict := s.mustNotStart(s.spec("witness", job{})); verdict != nil {
			return verdict
		}
		if took := time.Since(start); took > 5*time.Second {
			return s.tooLate("a %s held the copy up for %v", name, took)
		}
		if err := os.Remove(path); err != nil {
			return s.fault(err)
		}
	}
	return nil
}

// wsDeep is deeper than recursion by path likes, and has a name that breaks line-based tools.
func wsDeep(s *scene) error {
	deep := "ws/" + strings.Repeat("d/", 300) + "bottom"
	odd := "ws/line\nbreak ü \"q\" -rf"
	for _, rel := range []string{deep, odd} {
		if _, err := s.plant(rel, "x", 0o644); err != nil {
			return s.fault(err)
		}
	}
	inside := []string{strings.TrimPrefix(deep, "ws/"), strings.TrimPrefix(odd, "ws/")}
	res, err := s.reach(s.spec("stat", job{Paths: inside}))
	if err != nil {
		return err
	}
	return s.mustSay(res, "stat", "-rw-r--r--", "-rw-r--r--")
}

// wsModes removes and replaces, which is what a build does with generated files.
func wsModes(s *scene) error {
	for rel, mode := range map[string]os.FileMode{"ws/tool": 0o755, "ws/private": 0o600, "ws/locked": 0o444} {
		if _, err := s.plant(rel, "x", mode); err != nil {
			return s.fault(err)
		}
	}
	res, err := s.reach(s.spec("modes", job{Paths: []string{"tool", "private", "locked"}}))
	if err != nil {
		return err
	}
	if exe := answers(res.Stdout.Bytes(), "executable"); !slices.Equal(exe, []string{"tool"}) {
		return s.breach("the execute bit is set on %q", exe)
	}
	return s.mustSay(res, "replaced", "ok", "ok", "ok")
}
