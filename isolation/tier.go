// SPDX-License-Identifier: Apache-2.0

package isolation

import "github.com/evoseal/containment/executor"

// Tier is a level of isolation: a set of capabilities that were proven by attack, not the name of a product. Tiers are
// ordered and cumulative, so that < has a meaning. The zero value is refused everywhere.
type Tier uint8

// The tiers.
const (
	// TierInvalid is no tier.
	TierInvalid Tier = iota
	// TierRecovery: checkpoints, and nothing that confines. No variant runs at this tier.
	TierRecovery
	// TierGuarded: an edit allowlist, a clean environment, limits and a governor around a process of the host.
	TierGuarded
	// TierConfined: an unprivileged uid, namespaces and a system-call filter.
	TierConfined
	// TierContainer: a fresh container for each variant, bounded as a whole.
	TierContainer
	// TierKernel: a kernel of its own.
	TierKernel
)

var tierNames = []string{"invalid", "recovery", "guarded", "confined", "container", "kernel"}

// What each tier adds to the one below it.
const (
	guardedNeeds = executor.CleanEnv | executor.OutputBounded | executor.WorkspaceIsolated | executor.CPUBounded

	confinedNeeds = guardedNeeds | executor.UnprivilegedUser | executor.HostEnvHidden | executor.HostFilesHidden |
		executor.ProtectedReadOnly | executor.NetworkOff | executor.TreeKilled | executor.NoNewPrivileges |
		executor.SyscallsFiltered

	containerNeeds = confinedNeeds | executor.MemoryBounded | executor.ProcessesBounded | executor.DiskBounded |
		executor.MinimalRoot | executor.FreshPerRun

	kernelNeeds = containerNeeds | executor.OwnKernel
)

// Needs returns what an executor must have been proven to hold before a variant runs in it at this tier.
// [TierRecovery] needs nothing of an executor, since nothing is executed there. [TierInvalid], and every value that is
// not defined, needs everything.
func (t Tier) Needs() executor.Capability {
	switch t {
	case TierRecovery:
		return 0
	case TierGuarded:
		return guardedNeeds
	case TierConfined:
		return confinedNeeds
	case TierContainer:
		return containerNeeds
	case TierKernel:
		return kernelNeeds
	}
	return executor.AllCapabilities
}

// Reached returns the highest tier that the capabilities make up; [TierRecovery] if they make up none.
func Reached(proven executor.Capability) Tier {
	for t := TierKernel; t > TierRecovery; t-- {
		if proven.Has(t.Needs()) {
			return t
		}
	}
	return TierRecovery
}

// Level returns the number that people use: "0", "1", "1.5", "2", "3"; "" for what is no tier.
func (t Tier) Level() string {
	return []string{"", "0", "1", "1.5", "2", "3"}[defined(t, tierNames)]
}

// String returns the name, such as "container".
func (t Tier) String() string { return named(t, tierNames) }

// MarshalText writes the name.
func (t Tier) MarshalText() ([]byte, error) { return []byte(tierNames[defined(t, tierNames)]), nil }

// UnmarshalText reads a name; another text matches [ErrName].
func (t *Tier) UnmarshalText(text []byte) error { return parse(t, "tier", text, tierNames) }
