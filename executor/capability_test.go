// SPDX-License-Identifier: Apache-2.0

package executor_test

import (
	"encoding/json"
	"errors"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoseal/containment/executor"
)

// capabilities in their order, spelled out once more: the order and the names are part of stored reports.
var capabilities = []struct {
	bit  executor.Capability
	name string
}{
	{executor.CleanEnv, "CleanEnv"}, {executor.HostEnvHidden, "HostEnvHidden"}, {executor.TreeKilled, "TreeKilled"},
	{executor.OutputBounded, "OutputBounded"}, {executor.WorkspaceIsolated, "WorkspaceIsolated"},
	{executor.ProtectedReadOnly, "ProtectedReadOnly"}, {executor.HostFilesHidden, "HostFilesHidden"},
	{executor.NetworkOff, "NetworkOff"}, {executor.UnprivilegedUser, "UnprivilegedUser"},
	{executor.NoNewPrivileges, "NoNewPrivileges"}, {executor.SyscallsFiltered, "SyscallsFiltered"},
	{executor.MemoryBounded, "MemoryBounded"}, {executor.ProcessesBounded, "ProcessesBounded"},
	{executor.CPUBounded, "CPUBounded"}, {executor.DiskBounded, "DiskBounded"}, {executor.MinimalRoot, "MinimalRoot"},
	{executor.FreshPerRun, "FreshPerRun"}, {executor.OwnKernel, "OwnKernel"},
}

const undefined executor.Capability = 1 << 31

func TestCapabilities(t *testing.T) {
	t.Parallel()
	var all executor.Capability
	var names []string
	for i, c := range capabilities {
		if c.bit != 1<<i || c.bit.String() != c.name {
			t.Errorf("%s is %#x and says %q", c.name, uint32(c.bit), c.bit)
		}
		all |= c.bit
		names = append(names, c.name)
	}
	if all != executor.AllCapabilities {
		t.Errorf("AllCapabilities is %#x, want %#x", uint32(executor.AllCapabilities), uint32(all))
	}
	if got := all.String(); got != strings.Join(names, "|") {
		t.Errorf("all of them say %q", got)
	}
	if got := executor.Capability(0).String(); got != "none" {
		t.Errorf("the empty set says %q", got)
	}
	if got := (executor.CleanEnv | undefined).String(); got != "CleanEnv|Capability(0x80000000)" {
		t.Errorf("an undefined bit says %q", got)
	}
}

func TestCapabilitySets(t *testing.T) {
	t.Parallel()
	const some = executor.CleanEnv | executor.NetworkOff
	for _, tt := range []struct {
		have, want executor.Capability
		has        bool
		missing    executor.Capability
	}{
		{0, 0, true, 0},
		{some, 0, true, 0},
		{0, some, false, some},
		{some, some, true, 0},
		{some, executor.NetworkOff, true, 0},
		{some, executor.NetworkOff | executor.OwnKernel, false, executor.OwnKernel},
		{executor.AllCapabilities, undefined, false, undefined},
	} {
		if got := tt.have.Has(tt.want); got != tt.has {
			t.Errorf("%v has %v: %t", tt.have, tt.want, got)
		}
		if got := tt.have.Missing(tt.want); got != tt.missing {
			t.Errorf("%v misses %v of %v", tt.have, got, tt.want)
		}
	}
}

func TestCapabilityAll(t *testing.T) {
	t.Parallel()
	set := executor.OwnKernel | executor.CleanEnv | executor.DiskBounded | undefined
	want := []executor.Capability{executor.CleanEnv, executor.DiskBounded, executor.OwnKernel, undefined}
	if diff := cmp.Diff(want, slices.Collect(set.All())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for one := range set.All() {
		if one != executor.CleanEnv {
			t.Errorf("the first is %v", one)
		}
		break // the sequence must accept that
	}
	if n := len(slices.Collect(executor.AllCapabilities.All())); n != bits.OnesCount32(uint32(executor.AllCapabilities)) {
		t.Errorf("%d of all", n)
	}
}

func TestCapabilityJSON(t *testing.T) {
	t.Parallel()
	sets := []executor.Capability{0, executor.AllCapabilities, executor.TreeKilled | executor.OwnKernel}
	for _, c := range capabilities {
		sets = append(sets, c.bit)
	}
	for _, set := range sets {
		data, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		got := ^set
		if err := json.Unmarshal(data, &got); err != nil || got != set {
			t.Errorf("%v became %s and then %v, %v", set, data, got, err)
		}
	}
	if data, err := json.Marshal(sets[2]); err != nil || string(data) != `["TreeKilled","OwnKernel"]` {
		t.Errorf("%s, %v", data, err)
	}
	if data, err := json.Marshal(executor.Capability(0)); err != nil || string(data) != `[]` {
		t.Errorf("%s, %v", data, err)
	}
}

// What is not understood must never turn into "nothing is required".
func TestCapabilityJSONRefused(t *testing.T) {
	t.Parallel()
	for text, fault := range map[string]bool{
		`["CleanEnv","Teleport"]`:    true,
		`["cleanenv"]`:               true,
		`["none"]`:                   true,
		`["Capability(0x80000000)"]`: true,
		`["CleanEnv|NetworkOff"]`:    true,
		`"CleanEnv"`:                 false,
		`1`:                          false,
		`[1]`:                        false,
		`{}`:                         false,
	} {
		set := executor.NetworkOff
		err := json.Unmarshal([]byte(text), &set)
		_, ok := errors.AsType[*executor.SpecError](err)
		if err == nil || ok != fault || errors.Is(err, executor.ErrInvalidSpec) != fault {
			t.Errorf("%s: %v", text, err)
		}
		if set != executor.NetworkOff {
			t.Errorf("%s: the set became %v", text, set)
		}
	}
}
