// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/evoseal/containment/executor"
)

const (
	cgroupFix = "run as root where cgroups are mounted, or in a delegated one: systemd-run --user --scope -p Delegate=yes …"
	rootFix   = "run as root, or take an executor of a higher tier"
	tier2Fix  = "take containerd (tier 2): CGO_ENABLED=0 go run -tags containerd …"
)

// fixes says for each capability what would bring it. Which of the executors lacks it is in the table.
var fixes = map[executor.Capability]string{
	executor.CleanEnv:          "none: every executor has it",
	executor.OutputBounded:     "none: every executor has it",
	executor.HostEnvHidden:     "take bubblewrap or containerd: it needs a pid namespace",
	executor.TreeKilled:        rootFix + "; a delegated cgroup v2 does it too",
	executor.WorkspaceIsolated: "boot a kernel with Landlock (lsm=landlock,…), or take bubblewrap",
	executor.ProtectedReadOnly: rootFix,
	executor.HostFilesHidden:   "boot a kernel with Landlock (lsm=landlock,…), or take bubblewrap",
	executor.NetworkOff:        "do not ask for sockets, or take bubblewrap",
	executor.UnprivilegedUser:  rootFix + "; a kernel with Landlock ABI 6 (6.12) does it too",
	executor.NoNewPrivileges:   "boot a kernel with seccomp",
	executor.SyscallsFiltered:  "boot a kernel with seccomp",
	executor.MemoryBounded:     cgroupFix,
	executor.ProcessesBounded:  cgroupFix,
	executor.CPUBounded:        cgroupFix,
	executor.DiskBounded:       "run as root where a tmpfs can be mounted, and without DiskScratch",
	executor.MinimalRoot:       tier2Fix,
	executor.FreshPerRun:       tier2Fix,
	executor.OwnKernel:         "take containerd with the runtime gVisor (tier 3)",
}

// printTable prints capabilities and limits, one column for each executor that works here, then what is missing.
func printTable(w io.Writer, h host) error {
	var usable []findings
	fmt.Fprintf(w, "%s, uid %d\n", h.System, h.UID)
	for _, f := range h.Executors {
		if f.Error == "" {
			usable = append(usable, f)
			continue
		}
		fmt.Fprintf(w, "  no %s: %s\n     to get it: %s\n", f.Name, f.Error, f.Fix)
	}
	if len(usable) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row(table, "\n ", usable, func(f findings) string { return f.Name })
	row(table, "tier", usable, func(f findings) string {
		if f.Proven {
			return f.Tier.Level() + " " + f.Tier.String() + ", proven"
		}
		return f.Tier.Level() + " " + f.Tier.String() + ", claimed"
	})
	for c := range executor.AllCapabilities.All() {
		row(table, c.String(), usable, func(f findings) string {
			if f.Capabilities.Has(c) {
				return "yes"
			}
			return "no"
		})
	}
	for _, limit := range names(usable) {
		row(table, limit, usable, func(f findings) string { return enforced(f, limit) })
	}
	if err := table.Flush(); err != nil {
		return err
	}
	printFixes(w, usable)
	return nil
}

func row(w io.Writer, name string, all []findings, cell func(findings) string) {
	fmt.Fprint(w, name)
	for _, f := range all {
		fmt.Fprint(w, "\t", cell(f))
	}
	fmt.Fprintln(w)
}

// names lists the limits in the order in which the first executor that says anything reports them.
func names(all []findings) []string {
	var found []string
	for _, f := range all {
		for _, e := range f.Limits {
			if !slices.Contains(found, e.Limit) {
				found = append(found, e.Limit)
			}
		}
	}
	return found
}

func enforced(f findings, limit string) string {
	for _, e := range f.Limits {
		if e.Limit == limit {
			return fmt.Sprintf("%s, %s", e.By, e.Scope)
		}
	}
	return "?"
}

// printFixes prints each missing capability once for each executor that lacks it.
func printFixes(w io.Writer, all []findings) {
	for _, f := range all {
		for i, m := range f.Missing {
			if i == 0 {
				fmt.Fprintf(w, "\nmissing in %s\n", f.Name)
			}
			fmt.Fprintf(w, "  %-18v %s\n", m.Capability, m.Fix)
		}
		for i, p := range f.Failed {
			if i == 0 {
				fmt.Fprintf(w, "\nnot proven in %s\n", f.Name)
			}
			fmt.Fprintf(w, "  %-18v %s: %v %s\n", p.Capability, p.Name, p.Result, p.Detail)
		}
	}
}
