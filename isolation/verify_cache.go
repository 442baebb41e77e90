// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/evoseal/containment/executor"
)

// memory holds what this process has proven. A failure is never kept, and neither is anything about an executor that
// has no fingerprint or cannot be compared.
var memory struct {
	sync.Mutex
	reports map[memoryKey]Report
}

// memoryKey is what a verification holds for. The executor itself is part of it: the fingerprint alone would also be
// that of a type which embeds the executor and breaks it.
type memoryKey struct {
	executor    executor.Executor
	fingerprint string
	claimed     executor.Capability
	host        HostFacts
}

// key reports false if nothing may be remembered about the executor.
func (v *verification) key() (memoryKey, bool) {
	g := v.guard
	if g.fingerprint == "" || !reflect.ValueOf(g.inner).Comparable() {
		return memoryKey{}, false
	}
	return memoryKey{g.inner, g.fingerprint, g.claimed, v.report.Host}, true
}

// recall returns an earlier report that proves at least as much by at least as many attacks. Reports whose time is over
// are dropped, and with them the executors that they hold on to.
func (v *verification) recall() (Report, bool) {
	key, ok := v.key()
	if !ok || v.options.Fresh {
		return Report{}, false
	}
	memory.Lock()
	defer memory.Unlock()
	now := time.Now()
	for k, r := range memory.reports {
		if now.Before(r.Started) || !now.Before(r.Expires) {
			delete(memory.reports, k)
		}
	}
	r, ok := memory.reports[key]
	if !ok || !r.Proven.Has(v.report.Needs) || v.report.Full && !r.Full {
		return Report{}, false
	}
	r.Cached = true
	return r.clone(), true
}

// remember keeps the better of two reports: a verification that needed less must not take the place of one that proved
// more.
func (v *verification) remember() {
	key, ok := v.key()
	if !ok {
		return
	}
	memory.Lock()
	defer memory.Unlock()
	if memory.reports == nil {
		memory.reports = map[memoryKey]Report{}
	}
	if old, known := memory.reports[key]; known && !v.report.Proven.Has(old.Proven) {
		return
	}
	memory.reports[key] = v.report.clone()
}

// clone keeps what is remembered apart from what a caller holds.
func (r Report) clone() Report {
	r.Probes, r.Enforced = slices.Clone(r.Probes), slices.Clone(r.Enforced)
	return r
}
