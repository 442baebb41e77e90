// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"golang.org/x/net/bpf"
)

// Offsets in the kernel's struct seccomp_data. Both architectures are little endian: the lower half comes first.
const (
	offNumber, offArch, offArgs = 0, 4, 16

	retErrno = 0x00050000
	retAllow = 0x7fff0000

	x32Bit = 0x40000000

	// maxProgram is the kernel's limit, BPF_MAXINSNS.
	maxProgram = 4096
)

// entry is everything that the list says of one call number.
type entry struct {
	nr    uint32
	rules []rule
}

// assemble writes the program for one architecture. It has no jump backwards and every path ends in a return.
func assemble(a abi, o Options) ([]bpf.Instruction, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	list, err := entries(a, rules(o))
	if err != nil {
		return nil, err
	}
	body, err := compare(list)
	if err != nil {
		return nil, err
	}
	prog := append(prologue(a), body...)
	if len(prog) > maxProgram {
		return nil, fmt.Errorf("seccomp: program of %d instructions; the kernel takes %d", len(prog), maxProgram)
	}
	return prog, nil
}

// entries groups the rules by call number, in ascending order. A name that the table lacks is an error: a list that
// silently loses a row is worse than none.
func entries(a abi, list []rule) ([]entry, error) {
	byNumber := map[uint32][]rule{}
	for _, r := range list {
		for _, name := range r.names {
			nr, known := a.number(name)
			if !known {
				return nil, fmt.Errorf("seccomp: no number is known for %q", name)
			}
			if nr != none {
				byNumber[nr] = append(byNumber[nr], r)
			}
		}
	}
	all := make([]entry, 0, len(byNumber))
	for nr, rs := range byNumber {
		all = append(all, entry{nr, rs})
	}
	slices.SortFunc(all, func(x, y entry) int { return cmp.Compare(x.nr, y.nr) })
	return all, nil
}

// prologue ends everything that is not a known call of the native ABI, and leaves the call number loaded. The second
// ABI of amd64 has the same audit value and is told by a bit of the number; -1 is above it too.
func prologue(a abi) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: a.audit, SkipTrue: 1},
		ret(KillProcess),
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	if a.x32 {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32Bit, SkipFalse: 1}, ret(KillProcess))
	}
	return append(p,
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: newest, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: a.gapLast, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: a.gapFirst, SkipFalse: 1},
		ret(ENOSYS))
}

// compare tries the numbers one after the other. The kernel compiles the program when it is loaded and remembers which
// calls are always allowed, so only calls with conditions pay for the comparisons, and those have low numbers. A search
// by bisection loads no faster (measured: 0.13 ms either way) and needs far jumps.
func compare(list []entry) ([]bpf.Instruction, error) {
	var prog []bpf.Instruction
	for _, e := range list {
		body := judge(e.rules)
		if len(body) > math.MaxUint8 { // a conditional jump reaches no further
			return nil, fmt.Errorf("seccomp: the rules of call %d take %d instructions; split or shorten them to %d",
				e.nr, len(body), math.MaxUint8)
		}
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: e.nr, SkipTrue: uint8(len(body))})
		prog = append(prog, body...)
	}
	return append(prog, allow), nil
}

// judge applies the rules of one call. It is written from the end, so that the length of a jump is known.
func judge(rs []rule) []bpf.Instruction {
	prog := []bpf.Instruction{allow}
	for _, r := range slices.Backward(rs) {
		body := []bpf.Instruction{ret(r.answer)}
		for _, t := range slices.Backward(r.when) {
			body = append(check(t, len(body)), body...)
		}
		if len(r.when) == 0 { // nothing behind a rule without a condition can be reached
			prog = body
			continue
		}
		prog = append(body, prog...)
	}
	return prog
}

// check falls through if the test holds and skips the next n instructions if it does not.
func check(t test, n int) []bpf.Instruction {
	off := offArgs + 8*t.arg
	if t.high {
		off += 4
	}
	prog := []bpf.Instruction{bpf.LoadAbsolute{Off: off, Size: 4}}
	if t.mask != 0 {
		prog = append(prog, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: t.mask})
	}
	for i, v := range t.values {
		rest := len(t.values) - 1 - i // comparisons behind this one
		jump := bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(rest)}
		if t.not {
			jump.SkipTrue = uint8(rest + n)
		} else if rest == 0 {
			jump.SkipFalse = uint8(n)
		}
		prog = append(prog, jump)
	}
	return prog
}

var allow = bpf.RetConstant{Val: retAllow}

func ret(a Answer) bpf.Instruction {
	if a == KillProcess {
		return bpf.RetConstant{Val: uint32(KillProcess)}
	}
	return bpf.RetConstant{Val: retErrno | uint32(a)}
}
