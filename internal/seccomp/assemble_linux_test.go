// SPDX-License-Identifier: Apache-2.0

package seccomp_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/internal/seccomp"
)

// TestAssemble: the program is within the kernel's limit, the same every time, and Bytes is its exact image.
func TestAssemble(t *testing.T) {
	t.Parallel()
	for _, o := range []seccomp.Options{{}, {Sockets: seccomp.SocketsUnix},
		{Sockets: seccomp.SocketsAll, KernelIPC: true, Affinity: true, OwnProcesses: true, PathMetadata: true}} {
		prog, err := seccomp.Assemble(o)
		if err != nil {
			t.Fatal(err)
		}
		if len(prog) < 100 || len(prog) > 512 { // the kernel's limit is 4096; more than this means a mistake
			t.Errorf("%+v: %d instructions", o, len(prog))
		}
		again, err := seccomp.Assemble(o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(prog, again); diff != "" {
			t.Errorf("%+v: the second program differs:\n%s", o, diff)
		}
		image := seccomp.Bytes(prog)
		if len(image) != 8*len(prog) {
			t.Fatalf("%d bytes for %d instructions", len(image), len(prog))
		}
		for i, f := range prog {
			b := image[8*i:]
			if binary.NativeEndian.Uint16(b) != f.Code || b[2] != f.Jt || b[3] != f.Jf || binary.NativeEndian.Uint32(b[4:]) != f.K {
				t.Fatalf("instruction %d: % x, want %+v", i, b[:8], f)
			}
		}
	}
}

// TestUndefinedOption: a value that means nothing gives no program.
func TestUndefinedOption(t *testing.T) {
	t.Parallel()
	if prog, err := seccomp.Assemble(seccomp.Options{Sockets: 9}); !errors.Is(err, seccomp.ErrOptions) || prog != nil {
		t.Errorf("program of %d instructions, error %v; want none and ErrOptions", len(prog), err)
	}
}

// TestCalls: every row can be printed, and loosening an option only ever takes rows away.
func TestCalls(t *testing.T) {
	t.Parallel()
	strict := slices.Collect(seccomp.Calls(seccomp.Options{}))
	for _, c := range strict {
		if c.Name == "" || c.Reason == "" || c.Answer == 0 || c.String() == "" {
			t.Errorf("row %+v is incomplete", c)
		}
	}
	for _, o := range []seccomp.Options{{KernelIPC: true}, {Affinity: true}, {OwnProcesses: true, PathMetadata: true}} {
		loose := slices.Collect(seccomp.Calls(o))
		if len(loose) >= len(strict) {
			t.Errorf("%+v: %d rows, the strictest list has %d", o, len(loose), len(strict))
		}
		for _, c := range loose {
			if !slices.Contains(strict, c) {
				t.Errorf("%+v adds %v", o, c)
			}
		}
	}
	want := `ioctl when arg1 in 0x5412,0x541c: EPERM: types into a terminal`
	if !slices.ContainsFunc(strict, func(c seccomp.Call) bool { return c.String() == want }) {
		t.Errorf("no row reads %q", want)
	}
}

func BenchmarkAssemble(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := seccomp.Assemble(seccomp.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
