// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rlimit_test

import (
	"testing"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/internal/runtest"
	"github.com/evoseal/containment/executor/rlimit"
)

var _ executor.Fingerprinter = (*rlimit.Executor)(nil)

// What changes how runs are made changes the fingerprint, and nothing else does.
func TestFingerprint(t *testing.T) {
	state := runtest.StateDir(t)
	seen := map[string]string{}
	for name, c := range map[string]rlimit.Config{
		"default":       {},
		"sockets":       {Sockets: rlimit.SocketsUnix},
		"all sockets":   {Sockets: rlimit.SocketsAll},
		"path metadata": {PathMetadata: true},
		"reads":         {Reads: append(rlimit.DefaultReads()[:1:1], "/proc")},
		"on disk":       {DiskScratch: true},
		"workspace":     {WorkspaceBytes: 1 << 40},
	} {
		c.StateDir = state
		first, second := newExecutor(t, c).Fingerprint(), newExecutor(t, c).Fingerprint()
		if first != second || first == "" {
			t.Errorf("%s: %q, and then %q", name, first, second)
		}
		if other, taken := seen[first]; taken {
			t.Errorf("%s has the fingerprint of %s: %s", name, other, first)
		}
		seen[first] = name
	}
}
