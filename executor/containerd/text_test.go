// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3": "1.6.20",
		"containerd github.com/containerd/containerd/v2 v2.4.2 abcdef":                "2.4.2",
		"runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1\nspec: 1.0.2-dev":                "1.1.5",
		"runc version 1.4.0-rc.3": "1.4.0-rc.3",
		"1.2.8":                   "1.2.8",
		"2.0.0-beta.1":            "2.0.0-beta.1",
		"":                        "",
		"v2":                      "",
		"1.99999.0":               "",
	} {
		got, ok := parseVersion(text)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%q: %v, %t", text, got, ok)
		}
	}
}

func TestFloor(t *testing.T) {
	t.Parallel()
	for text, below := range map[string]bool{
		"1.0.0": true, "1.1.5": true, "1.1.15": true, "1.2.7": true, "1.2.8": false, "1.2.9": false, "1.3.0": true,
		"1.3.2": true,
		"1.3.3": false, "1.4.0-rc.2": true, "1.4.0-rc.3": false, "1.4.0-rc.10": false, "1.4.0-beta.9": true, "1.4.0": false,
		"1.5.0-rc.1": false, "1.5.3": false, "2.0.0": false, "0.1.1": true,
	} {
		v, ok := parseVersion(text)
		if !ok || belowFloor(v) != below {
			t.Errorf("%s: %t, want %t", text, belowFloor(v), below)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		reason string
	}{
		{errors.New(`failed to create shim task: exec: "runc": executable file not found in $PATH`), "PATH"},
		{errors.New("failed to start shim: something"), "shim"},
		{errors.New("open stdin fifo: open /run/x/stdin: no such file"), "RuntimeDir"},
		{errors.New("mkdir /var/lib/containerd/x: no space left on device"), "full"},
		{errors.New("mkdir /run/rootfs/box: read-only file system"), "mount point"},
		{errors.New("mkdir /sys/fs/cgroup/evoseal: permission denied (cgroup)"), "cgroups"},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), "in time"},
		{&fs.PathError{Op: "connect", Path: "/x", Err: fs.ErrPermission}, "socket"},
		{fmt.Errorf("x: %w", errdefs.ErrUnavailable), "answer"},
		{errors.New("something new"), ""},
	} {
		err := explain("op", c.err)
		d, ok := errors.AsType[*DaemonError](err)
		if !ok || !errors.Is(err, c.err) || !strings.Contains(d.Reason, c.reason) || c.reason == "" && d.Reason != "" {
			t.Errorf("%v: %#v", c.err, d)
			continue
		}
		if c.reason != "" && d.Fix == "" {
			t.Errorf("%v: no way out", c.err)
		}
		if again := explain("again", err); again != err {
			t.Errorf("explained twice: %v", again)
		}
	}
	if explain("op", nil) != nil {
		t.Error("no error is explained as one")
	}
}

func TestReference(t *testing.T) {
	t.Parallel()
	digest := "@sha256:" + strings.Repeat("0123456789abcdef", 4)
	for ref, ok := range map[string]bool{
		"docker.io/library/alpine:3": true, "host:5000/a/b" + digest: true, "localhost/x": true, "a": true,
		"": false, "-v": false, "--privileged": false, "a b": false, "a\nb": false, "a\x00": false, "ä": false,
		strings.Repeat("a", 600): false,
	} {
		if err := checkReference(ref); (err == nil) != ok {
			t.Errorf("%.40q: %v", ref, err)
		}
	}
}

func TestIdentifier(t *testing.T) {
	t.Parallel()
	for s, ok := range map[string]bool{
		"evoseal": true, "a-b_c.1": true, "": false, ".": false, "..": false, "-a": false, "a/b": false, "a b": false,
		"ä":                     false,
		strings.Repeat("a", 77): false,
	} {
		if identifier(s) != ok {
			t.Errorf("%q: %t", s, !ok)
		}
	}
}

func TestSubordinate(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"user:100000:65536": true, "user:100000:0": false, "user:100000": false, "": false, "# comment": false,
		"u:-1:5": false,
	} {
		if _, _, _, ok := subordinate(line); ok != want {
			t.Errorf("%q: %t", line, ok)
		}
	}
}

// Each form of the configuration must be the one that this daemon reads; a newer one ignores the old table of sockets.
func TestDaemonConfig(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"1.6.20": {"version = 2", "[grpc]\n  address = \"/d/sock\"", "[ttrpc]\n  address = \"/d/sock.ttrpc\""},
		"2.0.5":  {"version = 3", "[grpc]\n  address = \"/d/sock\""},
		"2.4.2": {"version = 4", "[plugins.'io.containerd.server.v1.grpc']\n  address = \"/d/sock\"",
			"[plugins.'io.containerd.server.v1.ttrpc']"},
	} {
		v, _ := parseVersion(text)
		got := daemonConfig(v, "/d")
		for _, part := range append(want, `root = "/d/root"`, `state = "/d/state"`, `"io.containerd.nri.v1.nri"`,
			`path = "/d/opt"`) {
			if strings.Count(got, part) != 1 {
				t.Errorf("%s: %q is not there once:\n%s", text, part, got)
			}
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	c := Config{RuntimeDir: "/x"}.withDefaults()
	want := Config{
		Namespace: "evoseal", Runtime: Runtime{Name: Runc}, IDs: IDRange{First: 0x70000000, Boxes: 256}, RuntimeDir: "/x",
		StateDir:       "/x/state",
		WorkspaceBytes: 2 << 30, WorkspaceFiles: 500_000, SweepEvery: defaultSweepEvery,
		Warm: Warm{MaxIdle: defaultMaxIdle, Fillers: 1},
	}
	if c.Logger == nil {
		t.Error("no logger")
	}
	if diff := cmp.Diff(want, c, cmpopts.IgnoreFields(Config{}, "Logger")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
