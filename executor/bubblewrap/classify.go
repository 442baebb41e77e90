// SPDX-License-Identifier: Apache-2.0

package bubblewrap

import (
	"cmp"
	"strings"
)

// facts are what the host says about user namespaces, read only when bubblewrap has failed. An empty text means that this
// kernel has no such setting.
type facts struct {
	maxUserNamespaces string // user.max_user_namespaces
	userNSClone       string // kernel.unprivileged_userns_clone, of Debian's kernels
	appArmor          string // kernel.apparmor_restrict_unprivileged_userns, of Ubuntu's
	seccomp           string // the caller's own mode, from /proc/self/status
	procOver          string // a mount below /proc, if there is one
}

// symptom is something that bubblewrap prints, with what it means.
type symptom struct {
	all  []string // parts of the message
	mean func(facts) (reason, fix string)
}

func fixed(reason, fix string) func(facts) (string, string) {
	return func(facts) (string, string) { return reason, fix }
}

// symptoms in the order in which they are looked for. The texts are those of bubblewrap 0.8 to 0.11.
var symptoms = []symptom{
	{[]string{"Unexpected capabilities but not setuid"}, fixed(
		"the caller has ambient or inheritable capabilities", "drop them before the program starts")},
	{[]string{"loopback: Failed RTM_NEW"}, stripped},
	{[]string{"setting up uid map", "Permission denied"}, mapRefused},
	{[]string{"setting up uid map"}, fixed(
		"the kernel refuses to map the run's uid", "map the range Config.FirstUID, Config.UIDs into the outer user namespace")},
	{[]string{"No permissions to create", "namespace"}, forbidden},
	{[]string{"reating new namespace failed", "Operation not permitted"}, forbidden},
	{[]string{"ENOSPC"}, usedUp},
	{[]string{"reating new namespace failed", "No space left on device"}, usedUp},
	{[]string{"kernel does not support"}, fixed(
		"the kernel has no user namespaces", "use a kernel with CONFIG_USER_NS, CONFIG_PID_NS and CONFIG_NET_NS")},
	{[]string{"Failed to make / slave"}, fixed(
		"the mount namespace cannot be changed: the caller is root only by name, without CAP_SYS_ADMIN",
		"allow user namespaces in the outer container, or run the program there as an unprivileged uid")},
	{[]string{"mount proc", "Operation not permitted"}, procRefused},
	{[]string{"max_user_namespaces"}, fixed(
		"nested user namespaces cannot be forbidden: bubblewrap cannot write user.max_user_namespaces in its own namespace",
		"mount /proc writable for the caller in the outer container")},
	{[]string{"Unknown option"}, fixed("this bubblewrap lacks an option", "install bubblewrap 0.8 or newer")},
	{[]string{"Can't find source path", "Permission denied"}, fixed(
		"the run's uid cannot reach a file or directory that it shall see",
		"give others search permission on the directories above it")},
	{[]string{"Can't find source path"}, fixed("a file or directory that the run shall see does not exist", "")},
}

// classify says what bubblewrap's failure means.
func classify(output string, f facts) *StartError {
	output = strings.TrimSpace(strings.ReplaceAll(strings.TrimSpace(output), "\n", "; "))
	for _, s := range symptoms {
		found := true
		for _, part := range s.all {
			found = found && strings.Contains(output, part)
		}
		if found {
			reason, fix := s.mean(f)
			return &StartError{Reason: reason, Fix: fix, Output: output}
		}
	}
	return &StartError{
		Reason: "bubblewrap failed", Fix: "see its message", Output: cmp.Or(output, "it printed nothing"),
	}
}

// forbidden: an errno of EPERM at the creation of a user namespace has several causes, and each has a setting of its own.
func forbidden(f facts) (string, string) {
	switch {
	case f.userNSClone == "0":
		return "the sysctl kernel.unprivileged_userns_clone is 0", "set it to 1"
	case f.maxUserNamespaces == "0":
		return "the sysctl user.max_user_namespaces is 0", "raise it"
	case f.appArmor == "1":
		return stripped(f)
	case f.seccomp == "2":
		return "a seccomp filter of the outer container forbids user namespaces",
			"start the container with a profile that allows clone and unshare with CLONE_NEWUSER"
	}
	return "user namespaces are forbidden here, by a security module or by the outer sandbox",
		"allow the program to create user namespaces, or run it outside of that sandbox"
}

// stripped is Ubuntu's way: the namespace is there, but without any capability in it.
func stripped(f facts) (string, string) {
	fix := "install an AppArmor profile that allows bwrap \"userns\""
	if f.appArmor == "1" {
		return "AppArmor takes the capabilities away from user namespaces (the sysctl " +
			"kernel.apparmor_restrict_unprivileged_userns is 1)", fix + ", or set the sysctl to 0"
	}
	return "a user namespace gets no capabilities here, probably by AppArmor", fix
}

func usedUp(f facts) (string, string) {
	if f.maxUserNamespaces == "0" {
		return "the sysctl user.max_user_namespaces is 0, as within a sandbox that forbids nested ones", "raise it"
	}
	return "no more user namespaces can be made: the limit user.max_user_namespaces is used up, or they are nested too deep",
		"raise the limit, or run fewer sandboxes at a time"
}

func mapRefused(facts) (string, string) {
	return "the uid map was refused: the caller is inside a Landlock domain, or a security module forbids it",
		"restrict the program with Landlock only after its executors were made, or not at all"
}

func procRefused(f facts) (string, string) {
	reason := "the kernel refuses a fresh /proc, because parts of the outer one are hidden"
	if f.procOver != "" {
		reason += ": something is mounted on " + f.procOver
	}
	return reason, "start the outer container with an unmasked /proc (docker: --security-opt systempaths=unconfined)"
}
