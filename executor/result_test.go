// SPDX-License-Identifier: Apache-2.0

package executor_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/evoseal/containment/executor"
)

// Only one thing is success.
func TestOK(t *testing.T) {
	t.Parallel()
	var missing *executor.Result
	if missing.OK() || new(executor.Result).OK() {
		t.Error("no result, or a zero result, is a success")
	}
	for c := range causes {
		for _, code := range []int{-1, 0, 1, 139} {
			r := &executor.Result{Cause: c, ExitCode: code, Signal: syscall.Signal(0)}
			if want := c == executor.CauseExited && code == 0; r.OK() != want {
				t.Errorf("%v with code %d: %t", c, code, r.OK())
			}
		}
	}
}

func TestOutputBytes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		out  executor.Output
		want string
	}{
		{"nothing", executor.Output{}, ""},
		{"head", executor.Output{Head: []byte("a\xff\x00"), Total: 3}, "a\xff\x00"},
		{"head and tail", executor.Output{Head: []byte("one"), Tail: []byte("two"), Total: 6}, "onetwo"},
		{
			"gap", executor.Output{Head: []byte("one"), Tail: []byte("two"), Total: 106, Truncated: true},
			"one\n[100 bytes not kept]\ntwo",
		},
		{"only a gap", executor.Output{Total: 5, Truncated: true}, "\n[5 bytes not kept]\n"},
	} {
		if got := string(tt.out.Bytes()); got != tt.want || tt.out.String() != got {
			t.Errorf("%s: %q and %q, want %q", tt.name, got, tt.out.String(), tt.want)
		}
	}
}

// Bytes returns memory of its own, also where Head has room behind it.
func TestOutputBytesAreCopied(t *testing.T) {
	t.Parallel()
	backing := []byte("head-rest")
	for _, truncated := range []bool{false, true} {
		o := executor.Output{Head: backing[:4], Tail: []byte("TAIL"), Total: 20, Truncated: truncated}
		b := o.Bytes()
		for i := range b {
			b[i] = 'x'
		}
		if got := fmt.Sprintf("%s %s", backing, o.Tail); got != "head-rest TAIL" {
			t.Errorf("truncated %t: the output became %q", truncated, got)
		}
	}
}
