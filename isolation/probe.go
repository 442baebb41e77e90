// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"slices"

	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/executor/executortest"
)

// contract names the cases that hold for every executor and on which a boundary rests: an end is told as it was, what
// is required is refused where it is not there, the original never changes, and what comes back is the run's own. The
// first one also shows that a run can be made at all.
var contract = []string{"exit-42", "require", "workspace-private", "art-link"}

// decisive names, for each capability, the attacks that are made by default: for each way in which the capability is
// commonly missing, the cheapest case that shows it. All others need Full.
var decisive = []struct {
	capability executor.Capability
	cases      []string
}{
	{executor.CleanEnv, []string{"env-exact", "fds"}},
	{executor.HostEnvHidden, []string{"env-proc", "argv-proc"}},
	{executor.TreeKilled, []string{"daemon-deaf", "timeout-tree"}},
	{executor.OutputBounded, []string{"output-flood", "hold-pipe-exit"}},
	{executor.WorkspaceIsolated, []string{"write-host", "write-original", "metadata-host", "sysctl"}},
	{executor.ProtectedReadOnly, []string{"protected-chmod", "protected-rename", "protected-parent"}},
	{executor.HostFilesHidden, []string{"read-secret", "read-magic", "path-unix"}},
	{executor.NetworkOff, []string{"tcp", "udp", "abstract-unix", "path-unix"}},
	{executor.UnprivilegedUser, []string{"identity", "capabilities", "signal-host", "launcher-fds"}},
	{executor.NoNewPrivileges, []string{"no-new-privs", "setuid-file"}},
	{executor.SyscallsFiltered, []string{"seccomp-mode", "call-nested-userns", "call-ptrace"}},
	{executor.MemoryBounded, []string{"mem-tree"}},
	{executor.ProcessesBounded, []string{"fork-bomb"}},
	{executor.CPUBounded, []string{"cpu-short"}},
	{executor.DiskBounded, []string{"workspace-full", "disk-mounts"}},
	{executor.MinimalRoot, []string{"minimal-root"}},
	{executor.FreshPerRun, []string{"fresh-files", "fresh-ipc"}},
	{executor.OwnKernel, []string{"own-kernel"}},
}

// choose returns the cases that are to be made for these needs, the contract first, then in the order of the suite.
func choose(needs executor.Capability, full bool) (cases []executortest.Case, err error) {
	wanted := slices.Clone(contract)
	for _, d := range decisive {
		if needs.Has(d.capability) {
			wanted = append(wanted, d.cases...)
		}
	}
	var attacked executor.Capability
	for _, c := range executortest.Cases() {
		i := slices.Index(wanted, c.Name)
		if i >= 0 {
			wanted = slices.DeleteFunc(wanted, func(name string) bool { return name == c.Name })
		}
		if (i >= 0 || full) && needs.Has(c.Needs) {
			cases, attacked = append(cases, c), attacked|c.Needs
		}
	}
	if len(wanted) > 0 || attacked.Missing(needs) != 0 {
		return nil, fmt.Errorf("isolation: the suite has no case %q, or nothing attacks %v", wanted, attacked.Missing(needs))
	}
	slices.SortStableFunc(cases, func(a, b executortest.Case) int { return rank(a) - rank(b) })
	return cases, nil
}

// rank puts the contract first, in its own order.
func rank(c executortest.Case) int {
	if i := slices.Index(contract, c.Name); i >= 0 {
		return i
	}
	return len(contract)
}

// proven adds up what the probes show. A capability is proven by all of its probes, of which there must be one, and
// only under an executor that holds what every executor must.
func proven(probes []Probe, needs executor.Capability) executor.Capability {
	var shown, refuted executor.Capability
	for _, p := range probes {
		switch {
		case p.Proves():
			shown |= p.Capability
		case p.Capability == 0:
			return 0
		default:
			refuted |= p.Capability
		}
	}
	return shown &^ refuted & needs
}
