// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/evoseal/containment/executor"
)

// scene is the stage of one attempt: a directory of the host with a workspace in it, a fresh nonce and a fresh tag, and
// the executor that is to hold. Nothing is shared between scenes but the copy of the binary.
type scene struct {
	name    string // of the case
	ctx     context.Context
	ex      executor.Executor
	control bool   // the executor is the control: touch only what the scene planted
	dir     string // of the host, mode 0755: a run that is not confined can reach it
	ws      string // the workspace, dir/ws; it holds the payload
	tag     string
	nonce   string
	undo    []func() // last in, first out
}

// newScene plants nothing but the payload; a case adds what it attacks.
func newScene(ctx context.Context, name string, ex executor.Executor, control bool) (*scene, error) {
	s := &scene{name: name, ctx: ctx, ex: ex, control: control, tag: randomHex(12), nonce: randomHex(16)}
	bin, release, err := holdTemplate()
	if err != nil {
		return nil, inconclusive(name, "%w", err)
	}
	s.later(release)
	if s.dir, err = os.MkdirTemp("", "executortest-"); err == nil {
		s.later(func() { _ = forceRemove(s.dir) })
		err = os.Chmod(s.dir, 0o755)
	}
	if err == nil {
		s.ws, err = s.workspace("ws", bin)
	}
	if err != nil {
		s.close()
		return nil, inconclusive(name, "scene: %w", err)
	}
	return s, nil
}

// workspace makes a directory that holds the payload. A link is as good as a copy and costs nothing.
func (s *scene) workspace(name, bin string) (string, error) {
	ws, err := s.mkdir(name, 0o755)
	if err != nil {
		return "", err
	}
	to := filepath.Join(ws, payloadName)
	if os.Link(bin, to) == nil {
		return ws, nil
	}
	return ws, copyFile(bin, to, 0o755)
}

// later registers what undoes a step, at the step.
func (s *scene) later(f func()) { s.undo = append(s.undo, f) }

// close kills what is left of the scene's runs, so that one failure does not become the next one, and removes the rest.
func (s *scene) close() {
	for _, pid := range s.survivors() {
		s.kill(pid)
	}
	for _, f := range slices.Backward(s.undo) {
		f()
	}
}

// mkdir makes a directory below the scene with exactly this mode.
func (s *scene) mkdir(rel string, mode os.FileMode) (string, error) {
	p := filepath.Join(s.dir, rel)
	if err := os.MkdirAll(p, 0o755); err != nil {
		return "", err
	}
	return p, os.Chmod(p, mode)
}

// plant writes a file below the scene with exactly this mode.
func (s *scene) plant(rel, content string, mode os.FileMode) (string, error) {
	p := filepath.Join(s.dir, rel)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		return "", err
	}
	return p, os.Chmod(p, mode)
}

// setenv adds a variable to this process until the scene ends.
func (s *scene) setenv(name, value string) error {
	s.later(func() { _ = os.Unsetenv(name) })
	return os.Setenv(name, value)
}

// spec asks for one payload with one job. A payload that hangs is a finding, so the wall limit is no longer than what a
// busy machine may need.
func (s *scene) spec(payload string, j job) executor.Spec {
	return executor.Spec{
		Args:      []string{"./" + payloadName, marker, payload, s.tag},
		Workspace: s.ws,
		Stdin:     bytes.NewReader(s.jobLine(j)),
		Limits:    executor.Limits{Wall: patience},
	}
}

// plainSpec asks for a payload that needs no job, so that standard input is free for the test.
func (s *scene) plainSpec(payload string, args ...string) executor.Spec {
	spec := s.spec(payload, job{})
	spec.Args = append(append(spec.Args, noJob), args...)
	spec.Stdin = nil
	return spec
}

// jobLine adds the nonce, which every job has.
func (s *scene) jobLine(j job) []byte {
	j.Nonce = s.nonce
	line, err := json.Marshal(j)
	if err != nil {
		panic(err) // a job is plain data
	}
	return append(line, '\n')
}

// run makes a run that must give a verdict.
func (s *scene) run(spec executor.Spec) (*executor.Result, error) {
	res, err := s.ex.Run(s.ctx, spec)
	if err != nil {
		return nil, inconclusive(s.name, "Run: %w", err)
	}
	if res == nil {
		return nil, s.breach("Run returned neither a result nor an error")
	}
	return res, nil
}

// reach is run for a payload that must have reached its attack.
func (s *scene) reach(spec executor.Spec) (*executor.Result, error) {
	res, err := s.run(spec)
	if err != nil {
		return nil, err
	}
	return res, s.mustReach(res)
}

// reachInTime is reach for a payload that its time limit is to end in the middle of its attack. One that met the limit
// before that gets more time, since a slow machine is no verdict.
func (s *scene) reachInTime(spec executor.Spec) (*executor.Result, error) {
	res, _, err := s.reachWithin(spec)
	return res, err
}

// timed is a run under a time limit, and how long Run took for it.
type timed struct{ limit, took time.Duration }

// reachWithin is reachInTime that also says under which time limit the payload got there.
func (s *scene) reachWithin(spec executor.Spec) (*executor.Result, timed, error) {
	var input []byte
	if spec.Stdin != nil {
		var err error
		if input, err = io.ReadAll(spec.Stdin); err != nil {
			return nil, timed{}, s.fault(err)
		}
	}
	for {
		if spec.Stdin != nil {
			spec.Stdin = bytes.NewReader(input) // a fresh one: somebody may still hold the last
		}
		start := time.Now()
		res, err := s.run(spec)
		took := timed{spec.Limits.Wall, time.Since(start)}
		if err != nil {
			return nil, took, err
		}
		verdict := s.mustReach(res)
		if verdict == nil || res.Cause != executor.CauseWallTimeout || spec.Limits.Wall >= patience {
			return res, took, verdict
		}
		spec.Limits.Wall = min(4*spec.Limits.Wall, patience)
	}
}

// mustReach tells a run that was contained from one that never got there.
func (s *scene) mustReach(res *executor.Result) error {
	said := answers(res.Stdout.Bytes(), "reached")
	if slices.Contains(said, proofOf(s.nonce)) || slices.Contains(said, proofOf(s.tag)) {
		return nil
	}
	return inconclusive(s.name, "the payload did not reach its attack: %s", describe(res))
}

// breach reports what was seen on the host.
func (s *scene) breach(format string, args ...any) error {
	return &Breach{Case: s.name, Detail: fmt.Sprintf(format, args...)}
}

// tooLate is breach where nothing is wrong but the time that something took.
func (s *scene) tooLate(format string, args ...any) error {
	return &Breach{Case: s.name, Detail: fmt.Sprintf(format, args...), late: true}
}

// fault reports that the scene itself could not be set up.
func (s *scene) fault(err error) error { return inconclusive(s.name, "scene: %w", err) }

// describe shows a result in a message.
func describe(res *executor.Result) string {
	return fmt.Sprintf("cause %v, exit %d, signal %v, detail %q, stdout %.300q, stderr %.300q",
		res.Cause, res.ExitCode, res.Signal, res.Detail, res.Stdout.Bytes(), res.Stderr.Bytes())
}

// randomHex returns n random bytes as text.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: see crypto/rand
	return hex.EncodeToString(b)
}

// forceRemove removes a tree that a payload may have locked against its owner.
func forceRemove(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
