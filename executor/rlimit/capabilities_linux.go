// SPDX-License-Identifier: Apache-2.0

package rlimit

import (
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/internal/cgroup"
)

// capabilities derives what is promised from what was found. A capability is here only if the conformance cases that
// attack it pass with exactly these means.
func (e *Executor) capabilities() executor.Capability {
	caps := executor.CleanEnv | executor.OutputBounded | executor.NoNewPrivileges | executor.SyscallsFiltered |
		executor.CPUBounded
	locked := e.landlock != nil
	scoped := locked && e.landlock.abi >= abiScope
	for _, c := range []struct {
		promise executor.Capability
		holds   bool
	}{
		// A reserved uid can be killed as a whole; so can a cgroup that the kernel kills.
		{executor.TreeKilled, e.host.Root || e.host.Cgroups.Has(cgroup.Kill)},
		// Another uid alone is not enough: directories like /tmp are writable for everybody. For the caller's own uid the
		// calls that Landlock does not restrict must be refused by the filter.
		{executor.WorkspaceIsolated, locked && (e.host.Root || !e.config.PathMetadata)},
		{executor.ProtectedReadOnly, e.host.Root},
		{executor.HostFilesHidden, locked && (e.config.Sockets == SocketsNone || e.landlock.abi >= abiUnixPath)},
		{executor.NetworkOff, e.config.Sockets == SocketsNone},
		{executor.UnprivilegedUser, e.host.Root || scoped},
		{executor.MemoryBounded, e.host.Cgroups.Has(cgroup.Memory)},
		// RLIMIT_NPROC on a reserved uid bounds as well, but the kernel counts no refusals: a contained fork bomb that
		// ends with 0 would look like a success.
		{executor.ProcessesBounded, e.host.Cgroups.Has(cgroup.Processes)},
		{executor.DiskBounded, e.host.Mounts && locked},
	} {
		if c.holds {
			caps |= c.promise
		}
	}
	return caps
}
