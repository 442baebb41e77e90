// SPDX-License-Identifier: Apache-2.0

package executor_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/evoseal/containment/executor"
)

// causes are spelled out once more: their names are part of stored reports.
var causes = map[executor.Cause]string{
	executor.CauseUnknown:       "unknown",
	executor.CauseExited:        "exited",
	executor.CauseSignalled:     "signalled",
	executor.CauseWallTimeout:   "wall-timeout",
	executor.CauseCPUTimeout:    "cpu-timeout",
	executor.CauseOutOfMemory:   "out-of-memory",
	executor.CauseProcessLimit:  "process-limit",
	executor.CauseOutputLimit:   "output-limit",
	executor.CauseDiskFull:      "disk-full",
	executor.CauseFileSize:      "file-size",
	executor.CausePolicyDenied:  "policy-denied",
	executor.CauseCancelled:     "cancelled",
	executor.CauseNotFound:      "not-found",
	executor.CauseNotExecutable: "not-executable",
}

// Every value of the type either has a name of its own here or is undefined.
func TestCauses(t *testing.T) {
	t.Parallel()
	seen := map[string]executor.Cause{}
	for i := range 256 {
		c := executor.Cause(i)
		name, defined := causes[c]
		if other, dup := seen[c.String()]; dup {
			t.Errorf("%d and %d are both %q", other, c, c)
		}
		seen[c.String()] = c
		if defined && c.String() != name || defined == strings.HasPrefix(c.String(), "cause(") {
			t.Errorf("%d says %q, want %q", i, c, name)
		}
		text, err := c.MarshalText()
		if err != nil || string(text) != c.String() {
			t.Errorf("%d is written as %q, %v", i, text, err)
		}
		back := ^c
		switch err := back.UnmarshalText(text); {
		case defined && (err != nil || back != c):
			t.Errorf("%q was read as %v, %v", text, back, err)
		case !defined && err == nil:
			t.Errorf("%q is not defined and was read as %v", text, back)
		}
	}
}

func TestCauseText(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(map[executor.Cause]executor.Cause{executor.CauseExited: executor.CauseWallTimeout})
	if err != nil || string(data) != `{"exited":"wall-timeout"}` {
		t.Errorf("%s, %v", data, err)
	}
	for _, text := range []string{"", "Exited", "exited ", "0", "cause(200)"} {
		c := executor.CauseCancelled
		if err := c.UnmarshalText([]byte(text)); err == nil || c != executor.CauseCancelled {
			t.Errorf("%q was read as %v, %v", text, c, err)
		}
	}
}
