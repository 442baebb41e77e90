// SPDX-License-Identifier: Apache-2.0

package rollback

import "fmt"

// nameOf returns the name of a value of an enumeration, or the type with the number if there is none: what a log shows
// must not pass for something else.
func nameOf[T ~uint8](kind string, names []string, first, v T) string {
	if v < first || int(v-first) >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, uint8(v))
	}
	return names[v-first]
}

var (
	kindNames    = []string{"user", "safety"}
	opNames      = []string{"create", "replace", "remove", "retype", "attributes"}
	syncNames    = []string{"durable", "process"}
	codecNames   = []string{"s2", "none"}
	mtimeNames   = []string{"exact", "touch"}
	foreignNames = []string{"keep", "quarantine"}
	specialNames = []string{"refuse", "skip"}
)

// String returns "user" or "safety".
func (k Kind) String() string { return nameOf("kind", kindNames, User, k) }

// String returns "create", "replace", "remove", "retype" or "attributes".
func (o Op) String() string { return nameOf("op", opNames, Create, o) }

// String returns "durable" or "process".
func (m SyncMode) String() string { return nameOf("sync", syncNames, SyncDurable, m) }

// String returns "s2" or "none".
func (c Codec) String() string { return nameOf("codec", codecNames, CodecS2, c) }

// String returns "exact" or "touch".
func (p MTimePolicy) String() string { return nameOf("mtime", mtimeNames, MTimeExact, p) }

// String returns "keep" or "quarantine".
func (p ForeignPolicy) String() string { return nameOf("foreign", foreignNames, ForeignKeep, p) }

// String returns "refuse" or "skip".
func (p SpecialPolicy) String() string { return nameOf("special", specialNames, SpecialRefuse, p) }
