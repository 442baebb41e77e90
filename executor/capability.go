// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/bits"
	"strings"
)

// Capability is a set of properties that an executor enforces. The zero value promises nothing. An executor claims a
// bit only if the conformance cases of that bit pass on this host for this caller.
type Capability uint32

// The capabilities, in the order in which they are reported.
const (
	// CleanEnv: the payload sees exactly Spec.Env over the fixed base, and no descriptor but 0, 1 and 2.
	CleanEnv Capability = 1 << iota
	// HostEnvHidden: no environment, argument vector or identity of a host process can be read.
	HostEnvHidden
	// TreeKilled: every process that the run started is dead when Run returns, and soon after the host was killed.
	TreeKilled
	// OutputBounded: output is drained, captured in constant memory and cut off at its limit.
	OutputBounded
	// WorkspaceIsolated: nothing outside the private copy and the run's own directories can be changed.
	WorkspaceIsolated
	// ProtectedReadOnly: Spec.ReadOnly holds against write, chmod, rename, unlink and link.
	ProtectedReadOnly
	// HostFilesHidden: files that were not declared cannot be read, and sockets in the file system cannot be used.
	HostFilesHidden
	// NetworkOff: no address family reaches anything outside the run.
	NetworkOff
	// UnprivilegedUser: the real uid is not 0, no capability is in any set, no host process can be signalled or traced.
	UnprivilegedUser
	// NoNewPrivileges: no_new_privs is set; set-uid files and file capabilities have no effect.
	NoNewPrivileges
	// SyscallsFiltered: a seccomp filter refuses the calls on the deny list and every foreign system call ABI.
	SyscallsFiltered
	// MemoryBounded: Limits.Memory bounds the sum over the run.
	MemoryBounded
	// ProcessesBounded: Limits.Processes bounds the sum over the run.
	ProcessesBounded
	// CPUBounded: Limits.CPU bounds the sum over the run.
	CPUBounded
	// DiskBounded: Limits.Disk bounds the sum over everything that the run can write.
	DiskBounded
	// MinimalRoot: the root file system holds what was declared and nothing else.
	MinimalRoot
	// FreshPerRun: no state of an earlier run can be met, in the kernel or in files.
	FreshPerRun
	// OwnKernel: the payload's system calls are served by a kernel that the host does not use.
	OwnKernel

	endOfCapabilities
)

// AllCapabilities is the set of every capability defined by this package.
const AllCapabilities = endOfCapabilities - 1

var capabilityNames = [...]string{
	"CleanEnv", "HostEnvHidden", "TreeKilled", "OutputBounded", "WorkspaceIsolated", "ProtectedReadOnly",
	"HostFilesHidden", "NetworkOff", "UnprivilegedUser", "NoNewPrivileges", "SyscallsFiltered", "MemoryBounded",
	"ProcessesBounded", "CPUBounded", "DiskBounded", "MinimalRoot", "FreshPerRun", "OwnKernel",
}

// Has reports whether every capability of want is in c.
func (c Capability) Has(want Capability) bool { return c&want == want }

// Missing returns the capabilities of want that are not in c.
func (c Capability) Missing(want Capability) Capability { return want &^ c }

// All yields the single capabilities of the set in the order of their definition. A bit that this package does not
// define is yielded last, by itself.
func (c Capability) All() iter.Seq[Capability] {
	return func(yield func(Capability) bool) {
		for rest := c; rest != 0; rest &= rest - 1 {
			if !yield(rest & -rest) {
				return
			}
		}
	}
}

// String joins the names with "|"; the empty set is "none".
func (c Capability) String() string {
	if c == 0 {
		return "none"
	}
	var names []string
	for one := range c.All() {
		if i := bits.TrailingZeros32(uint32(one)); i < len(capabilityNames) {
			names = append(names, capabilityNames[i])
		} else {
			names = append(names, fmt.Sprintf("Capability(%#x)", uint32(one)))
		}
	}
	return strings.Join(names, "|")
}

// MarshalJSON writes the set as a list of names.
func (c Capability) MarshalJSON() ([]byte, error) {
	names := []string{}
	for one := range c.All() {
		names = append(names, one.String())
	}
	return json.Marshal(names)
}

// UnmarshalJSON reads a list of names. A name that this package does not define is an error, never ignored.
func (c *Capability) UnmarshalJSON(data []byte) error {
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return fmt.Errorf("executor: capability list: %w", err)
	}
	var set Capability
	for _, name := range names {
		one, ok := capabilityByName(name)
		if !ok {
			fault := Fault{Field: "capability list", Rule: fmt.Sprintf("%q must be defined by this package", name)}
			return &SpecError{Faults: []Fault{fault}}
		}
		set |= one
	}
	*c = set
	return nil
}

func capabilityByName(name string) (Capability, bool) {
	for i, known := range capabilityNames {
		if known == name {
			return 1 << i, true
		}
	}
	return 0, false
}
