// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"slices"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
)

// wsPrivate destroys everything; the original is compared down to its times.
func wsPrivate(s *scene) error {
	if err := s.fillWorkspace(); err != nil {
		return err
	}
	same, err := s.unchanged(s.ws)
	if err != nil {
		return err
	}
	res, err := s.reach(s.plainSpec("rewrite"))
	if err != nil {
		return err
	}
	if left := answers(res.Stdout.Bytes(), "kept"); len(left) > 0 {
		return inconclusive(s.name, "the payload could not rewrite its own copy: %q", left)
	}
	return same()
}

// wsFresh runs twice over one workspace.
func wsFresh(s *scene) error {
	first := s.spec("write", job{Paths: []string{"left-behind"}, Text: "x"})
	if _, err := s.reach(first); err != nil {
		return err
	}
	res, err := s.reach(s.spec("read", job{Paths: []string{"left-behind"}}))
	if err != nil {
		return err
	}
	if got := answers(res.Stdout.Bytes(), "read"); len(got) > 0 {
		return s.breach("the second run sees a file of the first")
	}
	return nil
}

// wsParallel runs twice at the same time.
func wsParallel(s *scene) error {
	return s.meets(job{Paths: []string{"meeting"}}, "the working directory")
}

// tmpPrivate looks for the other run's files in the directories that every program uses without thinking.
func tmpPrivate(s *scene) error {
	return s.meets(job{Paths: []string{"$TMPDIR/meeting", "$HOME/meeting"}}, "TMPDIR or HOME")
}

// meets holds one run that has written a secret and looks for it in a second one.
func (s *scene) meets(j job, where string) error {
	j.Text = randomHex(16)
	h, err := s.hold("write", j, nil)
	if err != nil {
		return err
	}
	if !slices.Contains(answers(h.out.Bytes(), "write"), "ok") {
		return s.refusedWrite(h)
	}
	res, err := s.reach(s.spec("read", job{Paths: j.Paths}))
	if err != nil {
		return err
	}
	if _, err := h.release(); err != nil {
		return err
	}
	if strings.Contains(res.Stdout.String(), j.Text) {
		return s.breach("a run reads what another one has written at the same time in %s", where)
	}
	return nil
}

// refusedWrite is no proof of separation where a run must be able to write, which is everywhere that meets is used on
// the run's own directories.
func (s *scene) refusedWrite(h *held) error {
	return inconclusive(s.name, "the first run could not write: %.300q", h.out.Bytes())
}

// ghostFiles runs with rules that name nothing, in each way that a run can end.
func ghostFiles(s *scene) error {
	if err := s.fillWorkspace(); err != nil {
		return err
	}
	same, err := s.unchanged(s.ws)
	if err != nil {
		return err
	}
	ends := [][]string{{"exit", "0"}, {"exit", "1"}, {"signal", "9"}, {"sleep", "5000"}}
	for _, end := range ends {
		spec := s.plainSpec(end[0], end[1])
		spec.Hidden = []string{"not/there", "sub/nothing", ".npmrc"}
		if s.ex.Capabilities().Has(executor.ProtectedReadOnly) {
			spec.ReadOnly = []string{"nor/this", ".gitconfig", "main.go"}
		}
		spec.Limits.Wall = 2 * time.Second
		if end[0] == "sleep" {
			spec.Limits.Wall = 200 * time.Millisecond
		}
		if _, err := s.reachInTime(spec); err != nil {
			return err
		}
		if err := same(); err != nil {
			return err
		}
	}
	return nil
}
