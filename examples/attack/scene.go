// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/evoseal/containment/allowlist"
)

// The program that is attacked: the variant's own file, and what judges it.
const (
	workFile    = "src/work.sh"
	compareFile = "gate/compare.sh"
	victimText  = "untouched\n"
)

var files = map[string]string{
	workFile:        "echo 42 > answer\n",
	"gate/check.sh": "sh " + workFile + "\nsh " + compareFile + "\n",
	compareFile:     "test \"$(cat answer)\" = 42\n",
}

// scene is a tree, and around it the decoys that the attacks aim at.
type scene struct {
	base, dir  string // dir is the tree
	tree       allowlist.Source
	canary     string // the secret that must not come out
	tag        string // of the attempt: names files and marks processes
	secretFile string
	victimFile string
	victim     *victim
	listener   *listener
}

// newScene makes everything below base, which must be empty.
func newScene(ctx context.Context, base string) (*scene, error) {
	s := &scene{base: base, dir: filepath.Join(base, "tree"), canary: "secret-" + rand.Text()}
	s.tree = directory(s.dir)
	host := filepath.Join(base, "host")
	s.secretFile, s.victimFile = filepath.Join(host, "secret"), filepath.Join(host, "victim")
	// Nothing but the executor is to protect the decoys: everybody may read and write them.
	err := errors.Join(os.Chmod(base, 0o755), os.MkdirAll(host, 0o755), os.Chmod(host, 0o777),
		os.WriteFile(s.secretFile, []byte(s.canary+"\n"), 0o644))
	for name, content := range files {
		err = errors.Join(err, put(filepath.Join(s.dir, name), content))
	}
	err = errors.Join(err, put(filepath.Join(s.dir, ".env"), "TOKEN="+s.canary+"\n"))
	if err != nil {
		return nil, err
	}
	if s.listener, err = listen(); err != nil {
		return nil, err
	}
	return s, s.reset(ctx)
}

func put(file, content string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644))
}

// reset puts the decoys back for the next attempt.
func (s *scene) reset(ctx context.Context) (err error) {
	s.tag = "evil-" + rand.Text()
	s.listener.calls.Store(false)
	_ = os.Remove(s.victimFile)
	err = errors.Join(os.WriteFile(s.victimFile, []byte(victimText), 0o666), os.Chmod(s.victimFile, 0o666))
	if s.victim == nil || !s.victim.alive() {
		var e error
		s.victim, e = startVictim(ctx, "TOKEN="+s.canary)
		err = errors.Join(err, e)
	}
	return err
}

func (s *scene) close() {
	s.listener.Close()
	if s.victim != nil {
		s.victim.kill()
	}
	killTagged(s.number())
}

// number is the tag as the fraction of a number of seconds: an argument of sleep that tells whose process it is.
func (s *scene) number() string {
	digits := ""
	for _, r := range s.tag[len("evil-"):][:12] {
		digits += strconv.Itoa(int(r) % 10)
	}
	return ".000" + digits
}

// fill puts what only this scene knows into a script, and lets it say that it has begun.
func (s *scene) fill(script string) string {
	return strings.NewReplacer(
		"{tag}", s.tag, "{number}", s.number(), "{secret}", s.secretFile, "{secretdir}", filepath.Dir(s.secretFile),
		"{victimfile}", s.victimFile, "{victim}", strconv.Itoa(s.victim.pid), "{port}", s.listener.port, "{canary}", s.canary,
	).Replace("echo begin {tag}\n" + script + "\n")
}

func (s *scene) begin() string { return "begin " + s.tag }

// modify is an edit of a file as it was in the beginning.
func (s *scene) modify(name, content string) allowlist.Edit {
	return allowlist.Edit{Op: allowlist.Modify, Path: name, Content: []byte(content), Base: allowlist.Sum([]byte(files[name]))}
}

func create(name, content string) allowlist.Edit {
	return allowlist.Edit{Op: allowlist.Create, Path: name, Content: []byte(content)}
}

// directory is where the parser of patches reads.
type directory string

func (d directory) ReadFile(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(d), name))
}

// victim is a process of the host with a secret in its environment.
type victim struct {
	pid  int
	cmd  *exec.Cmd
	dead chan struct{}
}

func startVictim(ctx context.Context, env string) (*victim, error) {
	cmd := exec.CommandContext(ctx, "sleep", "600")
	cmd.Env = []string{env}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	v := &victim{pid: cmd.Process.Pid, cmd: cmd, dead: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(v.dead) }()
	return v, nil
}

func (v *victim) alive() bool {
	select {
	case <-v.dead:
		return false
	default:
		return true
	}
}

func (v *victim) kill() {
	_ = v.cmd.Process.Kill()
	<-v.dead
}

// listener is the home that an attack calls.
type listener struct {
	net.Listener
	port  string
	calls atomic.Bool
}

func listen() (*listener, error) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &listener{Listener: inner, port: strconv.Itoa(inner.Addr().(*net.TCPAddr).Port)}
	go func() {
		for {
			conn, err := inner.Accept()
			if err != nil {
				return
			}
			// Others may knock at any port of a host; only who sends a tag counts.
			go func() {
				defer conn.Close()
				line, _ := bufio.NewReader(conn).ReadString('\n')
				if strings.Contains(line, "evil-") {
					l.calls.Store(true)
				}
			}()
		}
	}()
	return l, nil
}

func (l *listener) heard() bool { return l.calls.Load() }

// tagged returns the processes that have a mark among their arguments.
func tagged(mark string) []int {
	var found []int
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		args, err := os.ReadFile(file)
		if err == nil && bytes.Contains(args, []byte(mark)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			found = append(found, pid)
		}
	}
	return found
}

// killTagged ends what the plain process has left. The marks are random and its alone.
func killTagged(mark string) {
	for _, pid := range tagged(mark) {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}
