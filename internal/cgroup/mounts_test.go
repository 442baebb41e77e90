// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []mount
	}{
		{"v2 only", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			[]mount{{dir: "/sys/fs/cgroup", root: "/", version: 2}}},
		{"hybrid, joined controllers",
			"33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct\n" +
				"40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup systemd rw,name=systemd\n" +
				"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
			[]mount{
				{dir: "/sys/fs/cgroup/cpu,cpuacct", root: "/", controllers: []string{"rw", "cpu", "cpuacct"}, version: 1},
				{dir: "/sys/fs/cgroup/systemd", root: "/", controllers: []string{"rw", "name=systemd"}, version: 1},
				{dir: "/sys/fs/cgroup/unified", root: "/", version: 2},
			}},
		{"container", "600 590 0:32 /docker/ab12 /sys/fs/cgroup/memory ro,nosuid master:11 - cgroup cgroup rw,memory\n",
			[]mount{{dir: "/sys/fs/cgroup/memory", root: "/docker/ab12", controllers: []string{"rw", "memory"}, version: 1}}},
		{"escapes", `30 23 0:26 /a\040b /mnt/x\134y\011 rw - cgroup2 none rw` + "\n",
			[]mount{{dir: "/mnt/x\\y\t", root: "/a b", version: 2}}},
		{"others and rubbish", "1 0 8:1 / / rw - ext4 /dev/sda rw\n\nx\n30 23 0:26 / /x rw cgroup2 cgroup2 rw\n1 2 - cgroup2\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, parseMounts(c.text), cmp.AllowUnexported(mount{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseOwn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       map[string]string
	}{
		{"v2 only", "0::/user.slice/user-1000.slice/session-2.scope\n",
			map[string]string{"": "/user.slice/user-1000.slice/session-2.scope"}},
		{"hybrid", "9:name=systemd:/\n4:memory:/a/b\n2:cpu,cpuacct:/c\n0::/\n",
			map[string]string{"name=systemd": "/", "memory": "/a/b", "cpu": "/c", "cpuacct": "/c", "": "/"}},
		{"colon in the group", "4:memory:/a:b\n", map[string]string{"memory": "/a:b"}},
		{"rubbish", "\nx\n4:memory\n", map[string]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, parseOwn(c.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		root, group, want string
		visible           bool
	}{
		{"/", "/", "/mnt", true},
		{"/", "/a/b", "/mnt/a/b", true},
		{"/docker/ab", "/docker/ab", "/mnt", true},
		{"/docker/ab", "/docker/ab/run", "/mnt/run", true},
		{"/docker/ab", "/docker/abc", "", false},
		{"/docker/ab", "/other", "", false},
		{"/..", "/", "", false},
		{"/", "/../outside", "/mnt/outside", true}, // opened and proven like any other
	} {
		got, visible := mount{dir: "/mnt", root: c.root}.below(c.group)
		if got != c.want || visible != c.visible {
			t.Errorf("root %q group %q: %q, %v; want %q, %v", c.root, c.group, got, visible, c.want, c.visible)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"r1": true, "A-b_c.9": true, "": false, "a/b": false, "../x": false, "a b": false, "ä": false, "a\n": false,
		string(make([]byte, 101)): false,
	} {
		if _, err := base(name); (err == nil) != ok {
			t.Errorf("%q: error %v, want accepted %v", name, err, ok)
		}
	}
}
