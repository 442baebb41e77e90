// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"slices"
	"strings"
	"testing"

	elastic "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
)

// newer lists calls that the library's tables do not have. From 424 on all architectures share one numbering.
var newer = map[string]uint32{"open_tree_attr": 467, "listns": 470, "fchmodat2": 452, "setxattrat": 463,
	"removexattrat": 466, "file_setattr": 469}

// TestNumbers holds the table against the library's, for both architectures.
func TestNumbers(t *testing.T) {
	t.Parallel()
	if !slices.IsSortedFunc(numbers, func(x, y numbered) int { return strings.Compare(x.name, y.name) }) {
		t.Error("the table is not sorted by name; it is searched by bisection")
	}
	for a, info := range map[abi]*arch.Info{amd64: arch.X86_64, arm64: arch.AARCH64} {
		if uint32(info.ID) != a.audit {
			t.Errorf("%s: audit value %#x, want %#x", a.name, a.audit, uint32(info.ID))
		}
		for _, n := range numbers {
			want, inLibrary := info.SyscallNames[n.name]
			later, isNewer := newer[n.name]
			switch got := n.nr[a.column]; {
			case inLibrary && got != uint32(want):
				t.Errorf("%s: %s is %d, want %d", a.name, n.name, got, want)
			case !inLibrary && isNewer && got != later:
				t.Errorf("%s: %s is %d, want %d", a.name, n.name, got, later)
			case !inLibrary && !isNewer && got != none:
				t.Errorf("%s: %s is %d, and the library has no such call", a.name, n.name, got)
			}
		}
		for nr, name := range info.SyscallNumbers {
			if n := uint32(nr); only32bit(nr) || n < a.gapFirst || n > a.gapLast && n <= newest {
				continue
			}
			t.Errorf("%s: %s, call %d, is in what the program takes for a gap", a.name, name, nr)
		}
	}
}

// only32bit: 403 to 423 carry 64-bit times for 32-bit architectures. The library lists them for arm64 too, where the
// kernel has none of them.
func only32bit(nr int) bool { return nr >= 403 && nr <= 423 }

// TestLibraryAgrees assembles the unconditional rows with the library and compares the verdicts on native calls.
func TestLibraryAgrees(t *testing.T) {
	t.Parallel()
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	native := map[string]abi{"x86_64": amd64, "aarch64": arm64}[info.Name]
	conditional := map[string]bool{}
	policy := elastic.Policy{DefaultAction: elastic.ActionAllow}
	for _, r := range rules(Options{}) {
		var names []string
		for _, name := range r.names {
			_, inLibrary := info.SyscallNames[name]
			if conditional[name] = conditional[name] || len(r.when) > 0; !conditional[name] && inLibrary {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			policy.Syscalls = append(policy.Syscalls,
				elastic.SyscallGroup{Names: names, Action: elastic.ActionErrno | elastic.Action(r.answer)})
		}
	}
	prog, err := policy.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := bpf.NewVM(prog)
	if err != nil {
		t.Fatal(err)
	}
	ours := machine(t, native, Options{})
	compared := 0
	for name, nr := range info.SyscallNames {
		if conditional[name] || only32bit(nr) {
			continue
		}
		compared++
		d := data{nr: uint32(nr), arch: native.audit}
		if got, want := simulate(t, ours, d), simulate(t, theirs, d); got != want {
			t.Errorf("%s: action %#x, the library says %#x", name, got, want)
		}
	}
	if compared < 300 {
		t.Errorf("compared only %d calls", compared)
	}
}
