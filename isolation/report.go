// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"log/slog"
	"slices"
	"time"

	"github.com/evoseal/containment/executor"
)

// Report is the evidence that one verification has left: which executor, on which host, was attacked with what, and
// what came of it. Package executor's capabilities are claims; Proven is what was claimed and attacked and held.
//
// A report is a record for people and auditors. It never takes the place of an attack: nothing in this package reads a
// report back to believe it. Its JSON form is an in-toto Statement; see [Report.MarshalJSON].
type Report struct {
	Executor    string // the implementation's type, such as "*bubblewrap.Executor"
	Fingerprint string // what the executor says about itself; "" if it cannot: see [executor.Fingerprinter]

	Needs   executor.Capability // what had to be proven
	Claimed executor.Capability // what the executor promised
	Proven  executor.Capability // claimed, attacked, and held
	Full    bool                // every attack of each capability was made, not only the decisive ones

	Host    HostFacts
	Library string // version of this module in the running program
	Suite   string // version of the set of attacks, [SuiteVersion]
	Nonce   string // fresh for each verification

	// Enforced is what the executor said about the mechanisms behind its promises, from one of the runs that were made.
	Enforced []executor.Enforcement
	Probes   []Probe // in the order of the suite

	Started, Finished time.Time
	// Expires is when the verification must be repeated, on this very host, since this boot, with the same executor.
	Expires time.Time

	// Cached says that the attacks were made by an earlier call in this process. It is no part of the record.
	Cached bool
}

// HostFacts identify the host and the caller as far as a verification depends on them.
type HostFacts struct {
	System   string `json:"system"`   // such as "linux/amd64"
	Kernel   string `json:"kernel"`   // its release
	BootID   string `json:"bootID"`   // a new one is drawn at each boot
	NameHash string `json:"nameHash"` // SHA-256 of the host's name: compares, and tells nothing to who cannot guess
	UID      int    `json:"uid"`      // effective, of the host program; -1 where there is none
	GID      int    `json:"gid"`
}

// Probe is one attack and how it ended.
type Probe struct {
	Name       string              `json:"name"`       // of the case in package executortest
	Capability executor.Capability `json:"capability"` // what it attacks; none: it holds for every executor
	Control    ProbeResult         `json:"control"`    // Broken: outside, the attack succeeds
	Result     ProbeResult         `json:"result"`
	Detail     string              `json:"detail,omitempty"` // what was seen on the host, or why there is no verdict
	MS         float64             `json:"ms"`               // milliseconds, the control included
}

// ProbeResult is how one attempt ended. Only Held is a proof.
type ProbeResult uint8

// The results.
const (
	// Inconclusive: no verdict. The attack was not made, did not get there, or was cut short.
	Inconclusive ProbeResult = iota
	// Held: the attack was made and had no effect.
	Held
	// Broken: it had the effect that the capability rules out.
	Broken
	// Evident stands for a control that is not needed: the case reads the property itself from the kernel, and seeing
	// it is the proof.
	Evident
)

var probeResultNames = []string{"inconclusive", "held", "broken", "evident"}

// String returns the name, such as "held".
func (r ProbeResult) String() string { return named(r, probeResultNames) }

// MarshalText writes the name; a value that is not defined is written as "inconclusive".
func (r ProbeResult) MarshalText() ([]byte, error) {
	return []byte(probeResultNames[defined(r, probeResultNames)]), nil
}

// UnmarshalText reads a name; another text matches [ErrName].
func (r *ProbeResult) UnmarshalText(text []byte) error {
	return parse(r, "result of a probe", text, probeResultNames)
}

// Proves reports whether the probe is evidence for its capability: the attack means something, and it was held.
func (p Probe) Proves() bool {
	return p.Result == Held && (p.Control == Broken || p.Control == Evident)
}

// Missing returns what was needed and is not proven.
func (r Report) Missing() executor.Capability { return r.Proven.Missing(r.Needs) }

// Failed returns the probes that are no proof.
func (r Report) Failed() []Probe {
	return slices.DeleteFunc(slices.Clone(r.Probes), Probe.Proves)
}

// LogValue leaves the probes out.
func (r Report) LogValue() slog.Value {
	return slog.GroupValue(slog.String("executor", r.Executor), slog.String("proven", r.Proven.String()),
		slog.String("missing", r.Missing().String()), slog.Int("probes", len(r.Probes)), slog.Int("failed", len(r.Failed())),
		slog.Duration("took", r.Finished.Sub(r.Started)), slog.String("hash", r.Hash()), slog.Bool("cached", r.Cached))
}
