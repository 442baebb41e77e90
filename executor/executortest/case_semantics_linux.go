// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/evoseal/containment/executor"
)

// semanticsCases hold for every executor of every tier: what goes in and what comes out.
func semanticsCases() []Case {
	return []Case{
		check("argv-exact", "a shell or a re-quoting launcher changes what the command means", 0, argvExact),
		check("argv-path", "a bare name is looked up in PATH and never in the working directory", 0, argvPath),
		check("stdin-empty", "a nil Stdin that is a terminal or the host's input blocks or leaks", 0, stdinEmpty),
		check("stdin-exact", "input that is re-encoded, cut or left open corrupts the run", 0, stdinExact),
		check("stdin-blocked", "a reader that never returns must not keep a finished run from returning",
			0, stdinBlocked),
		check("streams", "bytes that are not text must survive, and the two streams must not mix", 0, streamsExact),
		check("stdout-reopen", "programs open /dev/stdout again; a pipe of another uid answers EACCES",
			0, stdoutReopen),
		check("dir", "a run that starts in another directory works on the wrong files", 0, dirUsed),
		check("dir-missing", "a missing directory must not be replaced by another one", 0, dirMissing),
		check("dir-hidden", "a directory that the run cannot see is not one that it can start in", 0, dirHidden),
		check("home-tmp", "HOME and TMPDIR must be usable, and gone after the run", 0, homeTmp),
		alone(check("process-state", "an inherited umask, session, ignored signal or core limit changes results",
			0, processState)),
		check("enforcement-report", "a limit that nothing enforces must be visible in the result",
			0, enforcementReport),
		check("usage", "a figure must be measured or say that it was not", 0, usageMeasured),
	}
}

// argvExact sends what shells, launchers and C strings get wrong.
func argvExact(s *scene) error {
	odd := []string{
		"a b", "", `"double" 'single'`, "$(id) `id` $HOME ${PATH}", "line\nbreak\ttab", "-flag", "--", "*", "~", `back\slash`,
		"ünïcödé", "\xff\xfe not text", "; exit 3", "%s%n", "",
	}
	spec := s.plainSpec("argv", odd...)
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if got := answers(res.Stdout.Bytes(), "arg"); !slices.Equal(got, spec.Args) {
		return s.breach("argv %q became %q", spec.Args, got)
	}
	return s.mustOK(res)
}

// mustOK demands plain success.
func (s *scene) mustOK(res *executor.Result) error {
	if !res.OK() {
		return s.breach("the run is not OK: %s", describe(res))
	}
	return nil
}

// argvPath: a program of the workspace must never take the place of one that the caller meant.
func argvPath(s *scene) error {
	spec := s.plainSpec("reach")
	spec.Args[0] = payloadName // it lies in the working directory, which is not in PATH
	res, err := s.run(spec)
	if err != nil {
		return err
	}
	if res.Cause != executor.CauseNotFound || res.OK() {
		return s.breach("a bare name that is not in PATH gave %s", describe(res))
	}
	return nil
}

// stdinEmpty: an input that never ends hangs every program that reads it.
func stdinEmpty(s *scene) error {
	res, err := s.reach(s.plainSpec("stdin"))
	if err != nil {
		return err
	}
	return s.mustSay(res, "stdin", "")
}

// mustSay demands exactly these answers of one kind.
func (s *scene) mustSay(res *executor.Result, kind string, want ...string) error {
	if got := answers(res.Stdout.Bytes(), kind); !slices.Equal(got, want) {
		return s.breach("%s is %.300q, not %.300q; %s", kind, got, want, describe(res))
	}
	return nil
}

// stdinExact sends bytes that no text mode survives, in pieces.
func stdinExact(s *scene) error {
	text := "first\r\n\x00\xff" + strings.Repeat("0123456789abcdef", 512) + "\nlast line without end"
	spec := s.plainSpec("stdin")
	spec.Stdin = iotestOneByte{strings.NewReader(text)}
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	return s.mustSay(res, "stdin", text)
}

// iotestOneByte returns short reads, as a network does.
type iotestOneByte struct{ r io.Reader }

// Read returns less than it is asked for.
func (o iotestOneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 700)]) }

// stdinBlocked has a reader that never returns, in a run that never reads it.
func stdinBlocked(s *scene) error {
	r, w := io.Pipe()
	defer w.Close()
	spec := s.plainSpec("exit", "0")
	spec.Stdin = r
	start := time.Now()
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if took := time.Since(start); took > 5*time.Second {
		return s.tooLate("Run waited %v for a reader that does not return", took)
	}
	return s.mustOK(res)
}

// streamsExact sends bytes that are no UTF-8: what a test prints is evidence.
func streamsExact(s *scene) error {
	res, err := s.run(s.plainSpec("both"))
	if err != nil {
		return err
	}
	out, errs := []byte("out\x00\xff\xfe\n\r"), []byte("err\x80\x00")
	if !bytes.Equal(res.Stdout.Bytes(), out) || !bytes.Equal(res.Stderr.Bytes(), errs) {
		return s.breach("the streams are not what was written: %s", describe(res))
	}
	if res.Stdout.Total != int64(len(out)) || res.Stderr.Total != int64(len(errs)) || res.Stdout.Truncated {
		return s.breach("the totals are wrong: %d and %d", res.Stdout.Total, res.Stderr.Total)
	}
	return nil
}

// stdoutReopen needs the stream to belong to the run's user, which is not the one that made it.
func stdoutReopen(s *scene) error {
	res, err := s.reach(s.plainSpec("stdout-reopen"))
	if err != nil {
		return err
	}
	return s.mustSay(res, "reopened", "yes")
}

// dirUsed goes two levels down and up again: the directory is the one inside the copy.
func dirUsed(s *scene) error {
	if _, err := s.plant("ws/sub/deep/here.txt", "x", 0o644); err != nil {
		return s.fault(err)
	}
	spec := s.plainSpec("cwd")
	spec.Args[0], spec.Dir = "../../"+payloadName, "sub/deep"
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	if got := answers(res.Stdout.Bytes(), "cwd"); len(got) != 1 || !strings.HasSuffix(got[0], "/sub/deep") {
		return s.breach("the working directory is %q", got)
	}
	return s.mustSay(res, "entry", "here.txt")
}

// dirMissing: starting at the top instead would run the wrong tests, with success.
func dirMissing(s *scene) error {
	if _, err := s.plant("ws/file", "x", 0o644); err != nil {
		return s.fault(err)
	}
	for _, dir := range []string{"no/such/dir", "file"} {
		spec := s.plainSpec("reach")
		spec.Dir = dir
		if _, verdict := s.mustNotStart(spec); verdict != nil {
			return verdict
		}
	}
	return nil
}

// dirHidden exists on the host and not in the run, which is what counts.
func dirHidden(s *scene) error {
	if _, err := s.plant("ws/kept/file", "x", 0o644); err != nil {
		return s.fault(err)
	}
	spec := s.plainSpec("reach")
	spec.Dir, spec.Hidden = "kept", []string{"kept"}
	_, verdict := s.mustNotStart(spec)
	return verdict
}
