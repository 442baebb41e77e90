// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/evoseal/containment/executor/containerd/internal/box/stream"
)

func TestParseMount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		want stream.Mounted
		ok   bool
	}{
		{"36 35 98:0 /a /no\\040where\\134x rw,noatime shared:1 - ext3 /dev/root rw,errors=continue\n",
			stream.Mounted{Target: `/no where\x`, Options: "rw,noatime", Type: "ext3"}, true},
		{"36 35 98:0 /a /nowhere ro - tmpfs none rw", stream.Mounted{Target: "/nowhere", Options: "ro", Type: "tmpfs"}, true},
		{"36 35 98:0 /a /nowhere ro tmpfs none rw", stream.Mounted{}, false},
		{" - ", stream.Mounted{}, false},
		{"", stream.Mounted{}, false},
	} {
		if got, ok := parseMount(c.line); ok != c.ok || ok && got != c.want {
			t.Errorf("%q: %+v, %t", c.line, got, ok)
		}
	}
}

func TestUnescape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{`\040`: " ", `a\`: `a\`, `\04`: `\04`, `\999`: `\999`, `\134040`: `\040`, "": ""} {
		if got := unescape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestReadStatus(t *testing.T) {
	t.Parallel()
	const status = "Name:\tx\nGroups:\t1 2 \nCapInh:\t0000000000000001\nCapPrm:\t00000000000000ff\nCapEff:\tff\n" +
		"CapBnd:\t3\nCapAmb:\t4\n" +
		"NoNewPrivs:\t1\nSeccomp:\t2\nThreads:\t5\nno colon\n"
	want := stream.Hello{
		Groups: "1 2", Inheritable: 1, Permitted: 255, Effective: 255, Bounding: 3, Ambient: 4,
		NoNewPrivs: true, Seccomp: 2, Threads: 5,
	}
	var got stream.Hello
	readStatus(&got, []byte(status))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is looked at exists here as well as in a box.
func TestLook(t *testing.T) {
	t.Parallel()
	h, err := look()
	if err != nil {
		t.Fatal(err)
	}
	lists := len(h.Mounts) > 0 && len(h.Rlimits) == 16
	if len(h.Namespaces) != 7 || len(strings.Fields(h.UIDMap)) < 3 || len(strings.Fields(h.GIDMap)) < 3 {
		t.Errorf("namespaces %q, ids %q and %q", h.Namespaces, h.UIDMap, h.GIDMap)
	}
	if h.PID != os.Getpid() || h.UID != os.Geteuid() || h.Threads == 0 || len(h.BootID) != 36 || !lists {
		t.Errorf("%+v", h)
	}
	var again stream.Hello
	if err := stream.Decode(stream.Encode(h), &again); err != nil || !cmp.Equal(*h, again, cmpopts.EquateEmpty()) {
		t.Errorf("%v: %s", err, cmp.Diff(*h, again))
	}
}
