// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/evoseal/containment/executor"
)

// artifactPayloads is one payload with many jobs, because all begin alike.
func artifactPayloads() map[string]func(*payload) {
	return map[string]func(*payload){"artifacts": artifactsPayload}
}

// artifactsPayload makes out/report.txt, and beside it what its job names.
func artifactsPayload(p *payload) {
	p.put("out/report.txt", p.job.Text, 0o644)
	switch p.job.Name {
	case "basic":
		p.put("out/empty", "", 0o644)
		p.put("out/deep/er/report.txt", p.job.Text, 0o600)
	case "modes":
		p.must(os.Remove("out/report.txt"))
		p.put("out/plain", "x", 0o644|os.ModeSetgid)
		p.put("out/tool", "x", 0o755|os.ModeSetuid)
	case "git":
		for _, path := range []string{".git/hooks/post-checkout", "out/.git/config", "out/sub/.git/hooks/x", "out/module/.git"} {
			p.put(path, "#!/bin/sh\n", 0o755)
		}
	case "link", "linkdir", "hardlink", "race":
		p.plantEscape()
	default:
		p.plantOdd()
	}
	p.reached()
	if p.job.Name == "race" {
		p.race()
	}
	if p.job.Name == "fail" {
		exit(3)
	}
}

// must ends a payload that cannot prepare its attack; the run is then inconclusive, never contained.
func (p *payload) must(err error) {
	if err != nil {
		p.die(err.Error())
	}
}

// put writes a file with a mode, and makes its directories.
func (p *payload) put(path, text string, mode os.FileMode) {
	p.must(os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	p.must(err)
	_, err = f.WriteString(text)
	p.must(err)
	p.must(f.Chmod(mode)) // through the descriptor: an executor may well refuse chmod by path
	p.must(f.Close())
}

// plantEscape makes names that lead to the secret.
func (p *payload) plantEscape() {
	secret := p.job.Paths[0]
	switch p.job.Name {
	case "link":
		p.must(os.Symlink(secret, "out/key"))
	case "linkdir":
		p.must(os.Symlink(filepath.Dir(secret), "out/dir"))
	case "hardlink":
		p.put("out/first", "x", 0o644)
		p.must(os.Link("out/first", "out/second"))
		if os.Link(secret, "out/key") != nil { // mostly refused: it needs the same file system and the right to write
			_ = os.Symlink(secret, "out/key")
		}
	}
}

// plantOdd makes what is no ordinary file, or too much of it.
func (p *payload) plantOdd() {
	switch p.job.Name {
	case "kind":
		p.must(syscall.Mkfifo("out/fifo", 0o644))
		p.must(syscall.Mknod("out/socket", syscall.S_IFSOCK|0o644, 0))
		p.must(os.Mkdir("out/dir", 0o755))
	case "sparse":
		for name, n := range map[string]int64{"out/hole": 10 << 30, "out/small-hole": 8 << 20} {
			p.put(name, "x", 0o644)
			p.must(os.Truncate(name, n))
		}
	case "big":
		p.must(os.Remove("out/report.txt"))
		for i := range 4 {
			p.put("out/big"+strconv.Itoa(i), strings.Repeat("x", 600<<10), 0o644)
		}
	case "many":
		for i := range 20 {
			p.put("out/many"+strconv.Itoa(i), "x", 0o644)
		}
	case "depth":
		p.put("out/"+strings.Repeat("d/", executor.ArtifactDepth+8)+"bottom", "x", 0o644)
	}
}

// race changes what stands under two names for as long as the process lives: a file or a link, a directory or a link.
// It never ends by itself.
func (p *payload) race() {
	secret := p.job.Paths[0]
	p.must(os.Mkdir("out/dir", 0o755))
	p.put("out/dir/report.txt", "x", 0o644)
	for {
		_ = os.Symlink(secret, "out/tmp")
		_ = os.Rename("out/tmp", "out/report.txt")
		_ = os.Rename("out/dir", "out/dir.real")
		_ = os.Symlink(filepath.Dir(secret), "out/dir")
		_ = os.WriteFile("out/tmp", []byte("x"), 0o644)
		_ = os.Rename("out/tmp", "out/report.txt")
		_ = os.Remove("out/dir")
		_ = os.Rename("out/dir.real", "out/dir")
	}
}
