// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

// attackPlain makes all attacks on a program that takes no care: it writes what it is told and starts a plain process.
func attackPlain(ctx context.Context) column {
	col := column{name: "plain process"}
	for _, a := range attacks() {
		had, seen, err := plainly(ctx, a)
		switch {
		case err != nil:
			col.cells = append(col.cells, cell{unproven, err.Error()})
		case had:
			col.cells = append(col.cells, cell{succeeds, seen})
		default:
			col.cells = append(col.cells, cell{fails, seen})
		}
	}
	return col
}

// plainly makes one attempt in a scene of its own.
func plainly(ctx context.Context, a attack) (had bool, seen string, err error) {
	base, err := os.MkdirTemp("", "attack-plain-")
	if err != nil {
		return false, "", err
	}
	defer os.RemoveAll(base)
	s, err := newScene(ctx, base)
	if err != nil {
		return false, "", err
	}
	defer s.close()
	o := &observation{plain: true}
	if a.script != nil {
		for _, script := range []func(*scene) string{a.first, a.script} {
			if script != nil {
				o = runPlainly(ctx, s, script(s))
			}
		}
	} else if err := writePlainly(s, a); err != nil {
		return false, "", err
	}
	// A connection that was made may still be on its way to whoever listens.
	for deadline := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		if had, seen = a.effect(s, o); had || time.Now().After(deadline) {
			return had, seen, nil
		}
	}
}

// writePlainly writes the edits wherever their names lead.
func writePlainly(s *scene, a attack) error {
	if a.plain != nil {
		return a.plain(s)
	}
	edits, err := a.edits(s)
	for _, e := range edits {
		err = errors.Join(err, put(filepath.Join(s.dir, e.Path), string(e.Content)))
	}
	return err
}

// runPlainly runs the tests of a variant on a copy of the tree, with the caller's rights.
func runPlainly(ctx context.Context, s *scene, script string) *observation {
	o := &observation{plain: true}
	ws, tmp := filepath.Join(s.base, "copy"), filepath.Join(s.base, "tmp")
	err := errors.Join(os.RemoveAll(ws), os.CopyFS(ws, os.DirFS(s.dir)), os.MkdirAll(tmp, 0o755),
		os.WriteFile(filepath.Join(ws, workFile), []byte(script), 0o644))
	if err != nil {
		o.output = err.Error()
		return o
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Wall)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "gate/check.sh")
	cmd.Dir, cmd.WaitDelay = ws, time.Second
	cmd.Env = []string{"PATH=" + executor.DefaultPath, "HOME=" + tmp, "TMPDIR=" + tmp}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	watch := watchProcesses(s.number())
	o.passed = cmd.Run() == nil
	o.most, o.left = watch(), len(tagged(s.number()))
	killTagged(s.number())
	o.kept = out.Len()
	o.output = out.String() + readAll(filepath.Join(ws, "report"))
	return o
}

// watchProcesses counts marked processes until the function that it returns is called, which says how many there were at
// one time.
func watchProcesses(mark string) (most func() int) {
	stop, result := make(chan struct{}), make(chan int)
	go func() {
		top := 0
		for {
			select {
			case <-stop:
				result <- top
				return
			case <-time.After(20 * time.Millisecond):
				top = max(top, len(tagged(mark)))
			}
		}
	}()
	return func() int { close(stop); return <-result }
}

func containsLine(output, line string) bool { return strings.Contains("\n"+output, "\n"+line+"\n") }

// model is what the operator believes.
func model() isolation.TrustModel {
	return isolation.TrustModel{
		Generator: isolation.TrustedProvider, Host: isolation.SingleOperator, ExternalSideEffects: isolation.No,
		UntrustedInput: isolation.No, Secrets: isolation.NoSecrets, Unattended: isolation.No,
		DeclaredBy: "somebody who errs", DeclaredAt: time.Now().Add(-time.Minute).UTC(),
	}
}

// sources are made up, so that the table does not depend on who else works on this host: nothing in them speaks against
// the model, and each executor gets its turn.
func sources(base string) isolation.Sources {
	proc := filepath.Join(base, "proc")
	_ = put(filepath.Join(proc, "self/cgroup"), "0::/\n")
	_ = put(filepath.Join(proc, "1/status"), "Name:\tinit\nUid:\t0\t0\t0\t0\n")
	return isolation.Sources{
		Generator: isolation.GeneratorIdentity{Endpoint: "https://api.example.com/v1", Provider: "provider", Model: "large"},
		OwnModels: []string{"none"}, EnvNames: []string{"PATH"}, Files: []string{filepath.Join(base, "no-credentials")},
		Sockets: []string{filepath.Join(base, "no-socket")}, Proc: proc,
	}
}

// tools makes the host's programs visible where nothing is visible that was not declared.
func tools(executorName string) []executor.Mount {
	if executorName != "containerd" {
		return nil
	}
	var mounts []executor.Mount
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64"} {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			mounts = append(mounts, executor.Mount{Source: real, Target: dir})
		}
	}
	return mounts
}
