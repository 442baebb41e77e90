// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64 || riscv64 || loong64

package executortest

import (
	"slices"
	"strings"

	"github.com/evoseal/containment/executor"
)

// envCases attack what a process inherits through execve without being told: variables and descriptors.
func envCases() []Case {
	return []Case{
		attack("env-exact", "the host's environment holds keys; deny lists miss names", executor.CleanEnv, envExact),
		attack("env-override", "what the caller sets replaces the base and appears once",
			executor.CleanEnv, envOverride),
		attack("fds", "a descriptor that leaks into the run is a way out (CVE-2024-21626)",
			executor.CleanEnv, fdsClosed),
		attack("fd-directory", "an open directory of the host is the host's whole tree",
			executor.CleanEnv, fdDirectory),
		attack("fd-socket", "an open socket of the host speaks for the host", executor.CleanEnv, fdSocket),
	}
}

// envExact compares the whole environment, so that no list of bad names is needed.
func envExact(s *scene) error {
	for _, kind := range []string{"AWS_SECRET_", "TOKEN_", "API_KEY_", "PASSWORD_", "X"} {
		for range 40 {
			if err := s.setenv(kind+strings.ToUpper(randomHex(4)), randomHex(16)); err != nil {
				return s.fault(err)
			}
		}
	}
	spec := s.plainSpec("environ")
	spec.Env = map[string]string{"EXECUTORTEST_PLAIN": "a b", "EXECUTORTEST_EMPTY": "", "EXECUTORTEST_ODD": "x\ny=z \xff"}
	return s.environIs(spec)
}

// envOverride has the same name in the host, the base and the specification. Only the last may be left.
func envOverride(s *scene) error {
	for name, value := range map[string]string{"EXECUTORTEST_HOST": randomHex(8), "EXECUTORTEST_BOTH": "host"} {
		if err := s.setenv(name, value); err != nil {
			return s.fault(err)
		}
	}
	spec := s.plainSpec("environ")
	spec.Env = map[string]string{"TZ": "Europe/Zurich", "LANG": "", "PATH": "/nowhere", "EXECUTORTEST_BOTH": "caller"}
	return s.environIs(spec)
}

// environIs demands Spec.Env over the base and nothing else, byte for byte. HOME and TMPDIR are the run's own.
func (s *scene) environIs(spec executor.Spec) error {
	res, err := s.reach(spec)
	if err != nil {
		return err
	}
	got := answers(res.Stdout.Bytes(), "env")
	var home, tmp string
	for _, env := range got {
		if v, ok := strings.CutPrefix(env, "HOME="); ok {
			home = v
		}
		if v, ok := strings.CutPrefix(env, "TMPDIR="); ok {
			tmp = v
		}
	}
	want := spec.Environ(home, tmp)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || home == "" || tmp == "" {
		return s.breach("the environment has %d entries and is not the %d that were asked for: %.600q", len(got), len(want), got)
	}
	return nil
}
