// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"strings"
	"testing"
)

// The messages are bubblewrap's own, as people have reported them.
func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, output string
		facts        facts
		reason, fix  string // parts of
	}{
		{"debian", "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.",
			facts{userNSClone: "0"}, "kernel.unprivileged_userns_clone is 0", "1"},
		{"container profile", "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.",
			facts{seccomp: "2", userNSClone: "1", maxUserNamespaces: "100"}, "seccomp filter of the outer container", "CLONE_NEWUSER"},
		{"new wording", "bwrap: Creating new namespace failed: Operation not permitted", facts{}, "security module", "outside"},
		{"sysctl 0", "bwrap: Creating new namespace failed, likely because the kernel does not support user namespaces.  bwrap must be installed setuid on such systems.\nENOSPC",
			facts{maxUserNamespaces: "0"}, "user.max_user_namespaces is 0", "raise"},
		{"used up", "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
			facts{maxUserNamespaces: "31000"}, "used up", "raise"},
		{"root by name", "bwrap: Failed to make / slave: Permission denied", facts{}, "CAP_SYS_ADMIN", "unprivileged uid"},
		{"ubuntu", "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", facts{appArmor: "1"},
			"apparmor_restrict_unprivileged_userns is 1", "AppArmor profile"},
		{"some other module", "bwrap: loopback: Failed RTM_NEWLINK: Operation not permitted", facts{}, "AppArmor", "profile"},
		{"ubuntu, at once", "bwrap: setting up uid map: Permission denied", facts{appArmor: "1"}, "uid map was refused", "Landlock"},
		{"masked proc", "bwrap: Can't mount proc on /newroot/proc: Operation not permitted", facts{procOver: "/proc/kcore"},
			"something is mounted on /proc/kcore", "unmasked /proc"},
		{"ambient", "bwrap: Unexpected capabilities but not setuid, old file caps config?", facts{}, "ambient", "drop"},
		{"no support", "bwrap: kernel does not support user namespaces", facts{}, "no user namespaces", "CONFIG_USER_NS"},
		{"old", "bwrap: Unknown option --disable-userns", facts{}, "lacks an option", "0.8"},
		{"unreachable", "bwrap: Can't find source path /root/x: Permission denied", facts{}, "cannot reach", "search permission"},
		{"gone", "bwrap: Can't find source path /x: No such file or directory", facts{}, "does not exist", ""},
		{"something else", "bwrap: out of cheese", facts{}, "bubblewrap failed", "message"},
		{"nothing", "", facts{}, "bubblewrap failed", "message"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := classify(tc.output+"\n", tc.facts)
			if !strings.Contains(got.Reason, tc.reason) || !strings.Contains(got.Fix, tc.fix) {
				t.Errorf("reason %q, fix %q; want %q and %q", got.Reason, got.Fix, tc.reason, tc.fix)
			}
			if strings.Contains(got.Error(), "\n") || !strings.Contains(got.Error(), tc.reason) {
				t.Errorf("text %q", got.Error())
			}
			if got.Output == "" {
				t.Error("bubblewrap's own words are lost")
			}
		})
	}
}
