// SPDX-License-Identifier: Apache-2.0

package executor_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/evoseal/containment/executor"
)

var sentinels = map[string]error{
	"ErrUnsupported": executor.ErrUnsupported, "ErrInvalidSpec": executor.ErrInvalidSpec,
	"ErrLost": executor.ErrLost, "ErrClosed": executor.ErrClosed,
}

// Each error matches its own sentinel and no other one, through any wrapping.
func TestErrorsMatch(t *testing.T) {
	t.Parallel()
	cause := fmt.Errorf("cause: %w", fs.ErrPermission)
	for _, tt := range []struct {
		name string
		err  error
		want string // sentinel; empty for none
		wrap bool   // the cause can be reached
	}{
		{"unsupported", &executor.UnsupportedError{Executor: "x", Reason: "r", Err: cause}, "ErrUnsupported", true},
		{"unsupported without a cause", &executor.UnsupportedError{}, "ErrUnsupported", false},
		{"spec", &executor.SpecError{Faults: []executor.Fault{{Field: "Args", Rule: "r"}}}, "ErrInvalidSpec", false},
		{"set-up", &executor.SetupError{Step: "mount", Err: cause}, "", true},
		{"clean-up", &executor.CleanupError{Remains: []error{errors.New("other"), cause}}, "", true},
		{"lost", fmt.Errorf("%w: %w", executor.ErrLost, cause), "ErrLost", true},
		{"closed", executor.ErrClosed, "ErrClosed", false},
	} {
		err := fmt.Errorf("run: %w", tt.err)
		for name, sentinel := range sentinels {
			if got := errors.Is(err, sentinel); got != (name == tt.want) {
				t.Errorf("%s matches %s: %t", tt.name, name, got)
			}
		}
		if got := errors.Is(err, errors.ErrUnsupported); got != (tt.want == "ErrUnsupported") {
			t.Errorf("%s matches errors.ErrUnsupported: %t", tt.name, got)
		}
		if got := errors.Is(err, fs.ErrPermission); got != tt.wrap {
			t.Errorf("%s leads to its cause: %t", tt.name, got)
		}
	}
	if !errors.Is(executor.ErrUnsupported, errors.ErrUnsupported) {
		t.Error("the sentinel itself does not match errors.ErrUnsupported")
	}
}

// A message says what, why, and what to do.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err   error
		parts []string
	}{
		{&executor.UnsupportedError{
			Executor: "rlimit", Missing: executor.NetworkOff | executor.OwnKernel, Reason: "no Landlock", Fix: "use Linux 5.13",
			Err: errors.New("ENOSYS"),
		}, []string{"rlimit: ", "no Landlock", "NetworkOff|OwnKernel", "ENOSYS", "use Linux 5.13"}},
		{&executor.UnsupportedError{Reason: "r"}, []string{"executor: ", "r"}},
		{executor.ErrUnsupported, []string{"not supported"}},
		{
			&executor.SpecError{Faults: []executor.Fault{{"Args", "must a"}, {"Dir", "must b"}}},
			[]string{"Args: must a", "Dir: must b"},
		},
		{executor.Fault{Field: "Dir", Rule: "must"}, []string{"Dir: must"}},
		{&executor.SetupError{Step: "mount", Err: errors.New("busy")}, []string{"set-up", "mount", "busy"}},
		{&executor.CleanupError{Remains: []error{errors.New("one"), errors.New("two")}}, []string{"left", "one", "two"}},
	} {
		for _, part := range tt.parts {
			if !strings.Contains(tt.err.Error(), part) {
				t.Errorf("%q does not say %q", tt.err, part)
			}
		}
		if strings.Contains(tt.err.Error(), "%!") || strings.Contains(tt.err.Error(), "none") {
			t.Errorf("%q", tt.err)
		}
	}
}

func TestErrorTypes(t *testing.T) {
	t.Parallel()
	missing := &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}
	err := fmt.Errorf("run: %w", &executor.SetupError{Step: "mount", Err: missing})
	if e, ok := errors.AsType[*executor.SetupError](err); !ok || e.Step != "mount" {
		t.Errorf("%v", err)
	}
	if e, ok := errors.AsType[*fs.PathError](err); !ok || e.Path != "/x" {
		t.Errorf("%v", err)
	}
	err = &executor.SpecError{Faults: []executor.Fault{{"Args", "a"}, {"Dir", "b"}}}
	if f, ok := errors.AsType[executor.Fault](err); !ok || f.Field != "Args" {
		t.Errorf("the first fault is %+v", f)
	}
	err = &executor.CleanupError{Remains: []error{&fs.PathError{Op: "remove", Path: "/y", Err: fs.ErrExist}}}
	if e, ok := errors.AsType[*fs.PathError](err); !ok || e.Path != "/y" {
		t.Errorf("%v", err)
	}
}
