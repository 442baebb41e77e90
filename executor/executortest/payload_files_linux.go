// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// filePayloads are the payloads that read and change files.
func filePayloads() map[string]func(*payload) {
	return map[string]func(*payload){
		"read":      readPayload,
		"write":     writePayload,
		"rewrite":   rewritePayload,
		"tree":      treePayload,
		"links":     linksPayload,
		"stat":      statPayload,
		"modes":     modesPayload,
		"meta":      metaPayload,
		"remove":    removePayload,
		"protected": protectedPayload,
		"sysctl":    sysctlPayload,
	}
}

// readPayload prints every file of its job that it can read. $TMPDIR and $HOME stand for the run's own directories.
func readPayload(p *payload) {
	p.reached()
	for _, path := range p.job.Paths {
		data, err := os.ReadFile(os.ExpandEnv(path))
		if err != nil {
			p.sayErr("refused", err)
			continue
		}
		p.say("read", string(data[:min(len(data), 4096)]))
	}
}

// writePayload writes to every path, whether it exists or not, and waits: its host looks meanwhile. A host that gave it
// nothing but the job has closed standard input already.
func writePayload(p *payload) {
	for _, path := range p.job.Paths {
		p.sayErr("write", appendTo(os.ExpandEnv(path), p.job.Text))
	}
	p.reached()
	p.wait()
}

// appendTo appends, so that two attempts on one file both show.
func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	_ = f.Chmod(0o666) // others may read it in spite of the umask
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// rewritePayload destroys its working directory: everything is overwritten, then removed, then made anew.
func rewritePayload(p *payload) {
	p.reached()
	var files []string
	_ = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return nil
	})
	for _, path := range files {
		if filepath.Base(path) != payloadName { // a running program cannot be opened for writing
			_ = os.WriteFile(path, []byte("overwritten"), 0o644)
		}
		if err := os.Remove(path); err != nil {
			p.say("kept", err.Error())
		}
		_ = os.WriteFile(path, []byte("new"), 0o600)
	}
	_ = os.WriteFile("added", []byte("x"), 0o644)
}

// treePayload lists its working directory and prints what the small files in it hold.
func treePayload(p *payload) {
	p.reached()
	_ = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		p.say("file", path)
		if fi, err := d.Info(); err == nil && fi.Size() < 4096 {
			data, _ := os.ReadFile(path)
			p.say("holds", string(data))
		}
		return nil
	})
	for _, path := range []string{".git/config", ".env", "sub/.env", "mine.txt", "dir/secret"} {
		if data, err := os.ReadFile(path); err == nil { // a name can be usable without being listed
			p.say("holds", string(data))
		}
	}
}

// linksPayload shows the links in its directory and where they lead, as text.
func linksPayload(p *payload) {
	p.reached()
	entries, _ := os.ReadDir(".")
	for _, e := range entries {
		if target, err := os.Readlink(e.Name()); err == nil {
			p.say("link-"+e.Name(), target)
		}
	}
}

// statPayload shows modes without following links.
func statPayload(p *payload) {
	p.reached()
	for _, path := range p.job.Paths {
		fi, err := os.Lstat(path)
		if err != nil {
			p.sayErr("stat", err)
			continue
		}
		p.say("stat", fi.Mode().String())
	}
}

// modesPayload reports execute bits and replaces each file, which needs write permission on the directory and nothing
// else: an owner's mode bits are the owner's to change.
func modesPayload(p *payload) {
	p.reached()
	for _, path := range p.job.Paths {
		if fi, err := os.Stat(path); err == nil && fi.Mode()&0o100 != 0 {
			p.say("executable", path)
		}
		err := os.Remove(path)
		if err == nil {
			err = os.WriteFile(path, []byte("mine"), 0o644)
		}
		p.sayErr("replaced", err)
	}
}

// metaPayload changes what a rule about opening files does not see.
func metaPayload(p *payload) {
	p.reached()
	for _, path := range p.job.Paths {
		p.sayErr("chmod", os.Chmod(path, 0o777))
		p.sayErr("times", os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
		attr := []byte("user.executortest")
		p.sayErr("xattr", syscall.Setxattr(path, string(attr), []byte("x"), 0))
	}
}

// removePayload attacks names: unlink, rename, replace, and new entries of every kind. Paths[0] is a directory that
// anybody may write.
func removePayload(p *payload) {
	p.reached()
	dir := p.job.Paths[0]
	p.sayErr("rename", os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "moved")))
	p.sayErr("unlink", os.Remove(filepath.Join(dir, "b")))
	p.sayErr("mkdir", os.Mkdir(filepath.Join(dir, "made"), 0o777))
	p.sayErr("symlink", os.Symlink("/etc", filepath.Join(dir, "link")))
	p.sayErr("link", os.Link(payloadName, filepath.Join(dir, "hard")))
	p.sayErr("mkfifo", syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o666))
	p.sayErr("truncate", os.Truncate(filepath.Join(dir, "c"), 0))
}

// sysctlPayload opens each setting for writing; the first, and only that, is written back with the value that it has.
func sysctlPayload(p *payload) {
	p.reached()
	for i, path := range p.job.Paths {
		old, _ := os.ReadFile(path)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		if i == 0 {
			_, err = f.Write(old)
		}
		_ = f.Close()
		if err == nil {
			p.say("written", path)
		}
	}
}
