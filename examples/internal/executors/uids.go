// SPDX-License-Identifier: Apache-2.0

package executors

import "github.com/evoseal/containment/isolation"

// OwnUIDs are the ids that containers of ours have on the host, so that they are not taken for people: the default range of
// executor/containerd, which is not linked into every program.
func OwnUIDs() []isolation.UIDRange {
	return []isolation.UIDRange{{First: 0x7000_0000, Count: 256 << 16}}
}
