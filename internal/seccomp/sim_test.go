// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"fmt"
	"testing"

	"golang.org/x/net/bpf"
)

// data is the kernel's struct seccomp_data without the instruction pointer.
type data struct {
	nr, arch uint32
	args     [6]uint64
}

// simulate runs the program. The virtual machine reads packets, which are big endian; every 32-bit half is therefore
// stored that way at the place where the kernel has it, the lower half first.
func simulate(t testing.TB, vm *bpf.VM, d data) uint32 {
	t.Helper()
	var packet [64]byte
	binary.BigEndian.PutUint32(packet[offNumber:], d.nr)
	binary.BigEndian.PutUint32(packet[offArch:], d.arch)
	for i, arg := range d.args {
		binary.BigEndian.PutUint32(packet[offArgs+8*i:], uint32(arg))
		binary.BigEndian.PutUint32(packet[offArgs+8*i+4:], uint32(arg>>32))
	}
	action, err := vm.Run(packet[:])
	if err != nil {
		t.Fatal(err)
	}
	return uint32(action)
}

func machine(t testing.TB, a abi, o Options) *bpf.VM {
	t.Helper()
	prog, err := assemble(a, o)
	if err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(prog)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

func allOptions() []Options {
	var all []Options
	for s := SocketsNone; s <= SocketsAll; s++ {
		for bits := range 64 {
			all = append(all, Options{Sockets: s, KernelIPC: bits&1 != 0, Affinity: bits&2 != 0,
				OwnProcesses: bits&4 != 0, PathMetadata: bits&8 != 0,
				PathAttributes: bits&16 != 0, FileMetadata: bits&32 != 0})
		}
	}
	return all
}

func onEveryProgram(t *testing.T, check func(t *testing.T, a abi, o Options, vm *bpf.VM)) {
	for _, a := range []abi{amd64, arm64} {
		for _, o := range allOptions() {
			t.Run(fmt.Sprintf("%s/%+v", a.name, o), func(t *testing.T) {
				t.Parallel()
				check(t, a, o, machine(t, a, o))
			})
		}
	}
}

// TestForeignABI: nothing but the native 64-bit ABI reaches the list, whose default is "allow".
func TestForeignABI(t *testing.T) {
	onEveryProgram(t, func(t *testing.T, a abi, _ Options, vm *bpf.VM) {
		for _, arch := range []uint32{0x40000003, 0x40000028, 0xc000003e, 0xc00000b7, 0, 0xffffffff} {
			for _, nr := range []uint32{0, 1, 39, 101, 425, 0x40000001, 0x7fffffff, 0xffffffff} {
				got := simulate(t, vm, data{nr: nr, arch: arch})
				kill := arch != a.audit || a.x32 && nr >= 0x40000000
				if kill != (got == 0x80000000) {
					t.Errorf("arch %#x call %#x: action %#x, want kill %v", arch, nr, got, kill)
				}
			}
		}
		if a.x32 {
			for nr := uint32(0x40000000); nr < 0x40000400; nr++ {
				if got := simulate(t, vm, data{nr: nr, arch: a.audit}); got != 0x80000000 {
					t.Fatalf("x32 call %#x: action %#x, want kill", nr, got)
				}
			}
		}
	})
}

// TestUnknownCalls: numbers that were not judged answer ENOSYS, and those of the kernel's own probes pass.
func TestUnknownCalls(t *testing.T) {
	onEveryProgram(t, func(t *testing.T, a abi, _ Options, vm *bpf.VM) {
		for _, nr := range []uint32{a.gapFirst, a.gapFirst + 1, 400, a.gapLast, newest + 1, 0x1000, 0x3fffffff} {
			if got := simulate(t, vm, data{nr: nr, arch: a.audit}); got != retErrno|38 {
				t.Errorf("call %d: action %#x, want ENOSYS", nr, got)
			}
		}
		for _, nr := range []uint32{0, a.gapFirst - 2, a.gapLast + 1, 444, 445, 446, newest} {
			if got := simulate(t, vm, data{nr: nr, arch: a.audit}); got != retAllow {
				t.Errorf("call %d: action %#x, want allow", nr, got)
			}
		}
	})
}

// TestEveryCall compares the program with a plain reading of the list for every number and for arguments around every
// value that the list mentions, with and without rubbish in the upper halves.
func TestEveryCall(t *testing.T) {
	onEveryProgram(t, func(t *testing.T, a abi, o Options, vm *bpf.VM) {
		list, err := entries(a, rules(o))
		if err != nil {
			t.Fatal(err)
		}
		byNumber := map[uint32][]rule{}
		for _, e := range list {
			byNumber[e.nr] = e.rules
		}
		for nr := range uint32(newest + 1) {
			if nr >= a.gapFirst && nr <= a.gapLast {
				continue
			}
			for _, args := range variants(byNumber[nr]) {
				d := data{nr: nr, arch: a.audit, args: args}
				if got, want := simulate(t, vm, d), read(byNumber[nr], args); got != want {
					t.Fatalf("call %d args %#x: action %#x, want %#x", nr, args, got, want)
				}
			}
		}
	})
}

// read is the list in the words of its documentation.
func read(rs []rule, args [6]uint64) uint32 {
	for _, r := range rs {
		hit := true
		for _, c := range r.when {
			hit = hit && c.matches(uint32(args[c.arg]), uint32(args[c.arg]>>32))
		}
		if hit {
			return retErrno | uint32(r.answer)
		}
	}
	return retAllow
}

// variants crosses the interesting values of every argument that the rules look at.
func variants(rs []rule) [][6]uint64 {
	all := [][6]uint64{{}}
	seen := map[uint32]bool{}
	for _, r := range rs {
		for _, c := range r.when {
			if seen[c.arg] {
				continue
			}
			seen[c.arg] = true
			var wider [][6]uint64
			for _, args := range all {
				for _, v := range around(rs, c.arg) {
					args[c.arg] = v
					wider = append(wider, args)
				}
			}
			all = wider
		}
	}
	return append(all, [6]uint64{1, 2, 3, 4, 5, 6}, [6]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)})
}

// around yields 0, all ones, every value and mask that the rules compare the argument with, and the numbers beside them.
func around(rs []rule, arg uint32) []uint64 {
	lows := map[uint32]bool{0: true, ^uint32(0): true}
	for _, r := range rs {
		for _, c := range r.when {
			if c.arg != arg {
				continue
			}
			lows[c.mask], lows[^c.mask] = true, true
			for _, v := range c.values {
				lows[v], lows[v+1], lows[v|1<<20] = true, true, true
			}
		}
	}
	var all []uint64
	for v := range lows {
		all = append(all, uint64(v), 0xdeadbeef<<32|uint64(v))
	}
	return all
}
