// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Assemble returns the filter program for o on this architecture. Equal options give equal programs. The error matches
// [ErrOptions], or errors.ErrUnsupported on architectures other than amd64 and arm64.
func Assemble(o Options) ([]unix.SockFilter, error) {
	var a abi
	switch runtime.GOARCH {
	case amd64.name:
		a = amd64
	case arm64.name:
		a = arm64
	default:
		return nil, fmt.Errorf("seccomp: no call numbers for %s, only for amd64 and arm64: %w", runtime.GOARCH,
			errors.ErrUnsupported)
	}
	list, err := assemble(a, o)
	if err != nil {
		return nil, err
	}
	raw, err := bpf.Assemble(list)
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	prog := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		prog[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return prog, nil
}

// Bytes returns the program as the kernel's array of struct sock_filter in native byte order, 8 bytes per instruction.
func Bytes(prog []unix.SockFilter) []byte {
	b := make([]byte, 0, 8*len(prog))
	for _, f := range prog {
		b = binary.NativeEndian.AppendUint16(b, f.Code)
		b = append(b, f.Jt, f.Jf)
		b = binary.NativeEndian.AppendUint32(b, f.K)
	}
	return b
}
