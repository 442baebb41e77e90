// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"fmt"
	"testing"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]fmt.Stringer{
		"user": User, "safety": Safety, "kind(0)": Kind(0), "kind(3)": Kind(3),
		"create": Create, "replace": Replace, "remove": Remove, "retype": Retype, "attributes": Attributes,
		"op(0)": Op(0), "op(6)": Op(6), "op(255)": Op(255),
		"durable": SyncDurable, "process": SyncProcess, "sync(2)": SyncMode(2),
		"s2": CodecS2, "none": CodecNone, "codec(2)": Codec(2),
		"exact": MTimeExact, "touch": MTimeTouch, "mtime(2)": MTimePolicy(2),
		"keep": ForeignKeep, "quarantine": ForeignQuarantine, "foreign(2)": ForeignPolicy(2),
		"refuse": SpecialRefuse, "skip": SpecialSkip, "special(2)": SpecialPolicy(2),
	} {
		if got := v.String(); got != want {
			t.Errorf("%T(%d) is %q, want %q", v, v, got, want)
		}
	}
}
